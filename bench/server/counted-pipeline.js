'use strict'

// A stock BatchSpanProcessor with an OTLP protobuf exporter, both of which count. The queue is large, and as many exports may run at once
// as a flush needs. So a rival loses spans only if it cannot keep up, and not because of its defaults.

const QUEUE_SPANS = 65_536
const BATCH_SPANS = 512
const CONCURRENT_EXPORTS = QUEUE_SPANS / BATCH_SPANS * 2

module.exports = countedPipeline

// Accepts the classes of either SDK major. processorArguments: (exporter, options) => the arguments of the processor's constructor.
function countedPipeline ({ BatchSpanProcessor, OTLPTraceExporter, diag, DiagLogLevel, processorArguments }) {
  const counts = { created: 0, delivered: 0, failed: 0, overflowed: 0 }
  countOverflow(counts, diag, DiagLogLevel)

  class CountingProcessor extends BatchSpanProcessor {
    onEnd (span) {
      if (span.spanContext().traceFlags & 1) counts.created++
      super.onEnd(span)
    }
  }
  const exporter = counting(counts, new OTLPTraceExporter({ concurrencyLimit: CONCURRENT_EXPORTS }))
  const processor = new CountingProcessor(...processorArguments(exporter, { maxQueueSize: QUEUE_SPANS, maxExportBatchSize: BATCH_SPANS }))
  return {
    processor,
    flush: () => processor.forceFlush().catch(() => {}), // spans that could not be sent are counted
    counts () {
      const dropped = counts.failed + counts.overflowed + (processor._droppedSpansCount ?? 0)
      return { created: counts.created, delivered: counts.delivered, rejected: 0, dropped, waiting: 0 }
    }
  }
}

function counting (counts, exporter) {
  const send = exporter.export
  exporter.export = function (spans, done) {
    send.call(exporter, spans, (result) => {
      if (result.code === 0) counts.delivered += spans.length
      else counts.failed += spans.length
      done(result)
    })
  }
  return exporter
}

// The processor reports the number of spans that did not fit its queue in a warning, once there is room again. Until then the number is
// in _droppedSpansCount.
function countOverflow (counts, diag, DiagLogLevel) {
  const ignore = () => {}
  const warn = (message) => {
    const dropped = /^Dropped (\d+) spans/.exec(message)
    if (dropped) counts.overflowed += Number(dropped[1])
  }
  diag.setLogger({ error: ignore, warn, info: ignore, debug: ignore, verbose: ignore }, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
}
