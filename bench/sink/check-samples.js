'use strict'

// Decodes sampled bodies in full, after the round, with decoders that are not ours, and compares what
// they hold with what the round asked for.

const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js')
const countSpans = require('./count-spans')

const SPANS_PER_BODY_MAX = 400
const SERVER = 2

module.exports = { checkOtlp, checkDatadog }

// expected: { route: string | { source } | undefined, status } → { checked, attributes, faults: [sentence] }
// attributes: the keys of the last SERVER span, so that a result shows who recorded what.
function checkOtlp (samples, expected) {
  const ids = new Set()
  const faults = new Set()
  let checked = 0
  let attributes
  for (const { body } of samples) {
    const spans = decodeOtlp(body)
    if (spans.length !== countSpans(body)) faults.add('the decoder and the counter disagree on how many spans a body holds')
    for (const span of spans.slice(0, SPANS_PER_BODY_MAX)) {
      checked++
      ids.add(Buffer.from(span.spanId).toString('hex'))
      if (span.spanId.length !== 8 || span.traceId.length !== 16) faults.add('an id of a wrong length')
      if (span.kind !== SERVER) continue
      checkServerSpan(span, expected, faults)
      attributes = span.attributes.map(({ key }) => key)
    }
  }
  if (ids.size !== checked) faults.add(`${checked - ids.size} of ${checked} span ids came twice`)
  return { checked, attributes, faults: [...faults] }
}

function decodeOtlp (body) {
  const { resourceSpans } = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest.decode(body)
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
}

function checkServerSpan (span, expected, faults) {
  const attributes = new Map(span.attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]))
  const route = attributes.get('http.route')
  // Deno writes it as text.
  const status = attributes.get('http.response.status_code') ?? attributes.get('http.status_code')
  if (expected.route !== undefined && !routeMatches(route, expected.route)) faults.add(`a SERVER span with http.route ${route}`)
  if (Number(status) !== expected.status) faults.add(`a SERVER span with status code ${status}`)
  if (Number(span.endTimeUnixNano) < Number(span.startTimeUnixNano)) faults.add('a span that ends before it starts')
}

function routeMatches (route, expected) {
  return typeof expected === 'string' ? route === expected : new RegExp(expected.source).test(route)
}

// Datadog's v0.4: an array of traces, each an array of spans (maps).
function checkDatadog (samples) {
  const { decode } = require('@msgpack/msgpack')
  const ids = new Set()
  const faults = new Set()
  let checked = 0
  for (const { body, traces } of samples) {
    const decoded = decode(body, { useBigInt64: true })
    if (decoded.length !== traces) faults.add('the header and the body disagree on how many traces there are')
    for (const span of decoded.flat().slice(0, SPANS_PER_BODY_MAX)) {
      checked++
      ids.add(String(span.span_id))
    }
  }
  if (ids.size !== checked) faults.add(`${checked - ids.size} of ${checked} span ids came twice`)
  return { checked, faults: [...faults] }
}
