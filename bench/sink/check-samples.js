'use strict'

// After the round, decodes sampled bodies in full with a third-party decoder, and compares their content with what the round expects.

const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js')
const countSpans = require('./count-spans')

const SPANS_PER_BODY_MAX = 400
const SERVER = 2

module.exports = checkOtlp

// samples: bodies; expected: { route, status } → { checked, faults: [sentence] }
function checkOtlp (samples, expected) {
  const ids = new Set()
  const faults = new Set()
  let checked = 0
  for (const body of samples) {
    const spans = decodeOtlp(body)
    if (spans.length !== countSpans(body)) faults.add('the decoder and the counter disagree on the number of spans in a body')
    for (const span of spans.slice(0, SPANS_PER_BODY_MAX)) {
      checked++
      ids.add(Buffer.from(span.spanId).toString('hex'))
      if (span.spanId.length !== 8 || span.traceId.length !== 16) faults.add('an id of the wrong length')
      if (span.kind !== SERVER) continue
      checkServerSpan(span, expected, faults)
    }
  }
  if (ids.size !== checked) faults.add(`${checked - ids.size} of ${checked} span ids came twice`)
  return { checked, faults: [...faults] }
}

function decodeOtlp (body) {
  const { resourceSpans } = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest.decode(body)
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
}

function checkServerSpan (span, expected, faults) {
  const attributes = new Map(span.attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]))
  const route = attributes.get('http.route')
  const status = attributes.get('http.response.status_code') ?? attributes.get('http.status_code')
  if (route !== expected.route) faults.add(`a SERVER span with http.route ${route}`)
  if (Number(status) !== expected.status) faults.add(`a SERVER span with status code ${status}`)
  if (Number(span.endTimeUnixNano) < Number(span.startTimeUnixNano)) faults.add('a span that ends before it starts')
}
