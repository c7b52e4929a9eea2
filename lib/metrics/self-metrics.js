'use strict'

// What light-trace says about itself, under the names of the conventions. Spans are counted in plain numbers all
// the time; here they are read when metrics are collected.
// https://opentelemetry.io/docs/specs/semconv/otel/sdk-metrics/

const SPAN = '{span}'

/**
 * Makes the instruments.
 * @param {Meter} meter of the API
 * @param {() => object} snapshot what `app.lightTrace.stats()` answers
 */
function openSelfMetrics (meter, snapshot) {
  const counter = (name, description) => meter.createObservableCounter(name, { unit: SPAN, valueType: 0, description })
  const upDown = (name, description, unit = SPAN) => meter.createObservableUpDownCounter(name, { unit, valueType: 0, description })
  const started = counter('otel.sdk.span.started', 'The number of created spans.')
  const live = upDown('otel.sdk.span.live', 'The number of created spans for which the end operation has not been called yet.')
  const size = upDown('otel.sdk.processor.span.queue.size', 'The number of spans in the queue.')
  const processed = counter('otel.sdk.processor.span.processed', 'The number of spans for which the processing has finished, either successful or failed.')
  const inflight = upDown('otel.sdk.exporter.span.inflight', 'The number of spans which were passed to the exporter, but that have not been exported yet.')
  const exported = counter('otel.sdk.exporter.span.exported', 'The number of spans for which the export has finished, either successful or failed.')

  meter.addBatchObservableCallback((result) => {
    const { spans } = snapshot()
    result.observe(started, spans.started)
    result.observe(live, spans.started - spans.ended)
    result.observe(size, spans.queued)
    result.observe(processed, spans.accepted - spans.queued - spans.inFlight - sum(spans.dropped))
    result.observe(inflight, spans.inFlight)
    result.observe(exported, spans.delivered + spans.handedOver)
    if (spans.rejected > 0) result.observe(exported, spans.rejected, { 'error.type': 'rejected' })
    for (const [reason, count] of Object.entries(spans.dropped)) result.observe(processed, count, { 'error.type': reason })
  }, [started, live, size, processed, inflight, exported])
}

function sum (counts) {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

module.exports = { openSelfMetrics }
