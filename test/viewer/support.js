'use strict'

// Starts a viewer on a free port, and makes data to send to it.

const { Viewer } = require('../../viewer/http/server')
const { encodeRequest } = require('../support/otlp-encode')

const START_MS = 1_763_753_000_000

module.exports = { startViewer, spansOf, traceId, spanId, START_MS }

/** @returns {Promise<{ viewer, url, get (path), json (path), send (spans, options), post (path, body, headers) }>} */
async function startViewer (t, options) {
  const viewer = new Viewer(options)
  const port = await viewer.listen(0)
  t.teardown(() => viewer.close())
  const url = `http://127.0.0.1:${port}`
  const get = (path, init) => fetch(url + path, init)
  const post = (path, body, headers) => fetch(url + path, { method: 'POST', body, headers })
  return {
    viewer,
    url,
    port,
    get,
    post,
    json: async (path, init) => (await get(path, init)).json(),
    send: (spans, { service } = {}) => post('/v1/traces', encodeRequest(spansOf(spans, service)), { 'content-type': 'application/x-protobuf' })
  }
}

function traceId (number) {
  return number.toString(16).padStart(32, '0')
}

function spanId (number) {
  return number.toString(16).padStart(16, '0')
}

/**
 * Returns an ExportTraceServiceRequest of { trace, id, parent, name, kind, at, ms, status, message, attributes, events, links }. Ids are
 * numbers, and `at` and `ms` are milliseconds after START_MS.
 */
function spansOf (spans, service = 'shop') {
  return {
    resourceSpans: [{
      resource: { attributes: service === null ? [] : attributesOf({ 'service.name': service }) },
      scopeSpans: [{ scope: { name: 'light-trace', version: '1.2.3' }, spans: spans.map(spanOf) }]
    }]
  }
}

function spanOf ({ trace = 1, id = 1, parent, name = 'work', kind = 1, at = 0, ms = 10, status, message = '', attributes = {}, events = [], links = [] }) {
  return {
    traceId: Buffer.from(traceId(trace), 'hex'),
    spanId: Buffer.from(spanId(id), 'hex'),
    ...(parent !== undefined && { parentSpanId: Buffer.from(spanId(parent), 'hex') }),
    name,
    kind,
    startTimeUnixNano: nano(at),
    endTimeUnixNano: nano(at + ms),
    attributes: attributesOf(attributes),
    events: events.map((event) => ({ timeUnixNano: nano(event.at ?? 0), name: event.name, attributes: attributesOf(event.attributes ?? {}) })),
    links: links.map((link) => ({ traceId: Buffer.from(traceId(link.trace), 'hex'), spanId: Buffer.from(spanId(link.span), 'hex'), attributes: [] })),
    status: status === undefined ? undefined : { code: status, message }
  }
}

function nano (ms) {
  const nanos = BigInt(START_MS) * 1_000_000n + BigInt(Math.round(ms * 1e6))
  return { low: Number(nanos & 0xffff_ffffn) | 0, high: Number(nanos >> 32n), unsigned: true }
}

function attributesOf (attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }))
}

function valueOf (value) {
  switch (typeof value) {
    case 'string': return { stringValue: value }
    case 'boolean': return { boolValue: value }
    case 'number': return Number.isInteger(value) ? { intValue: value } : { doubleValue: value }
  }
  if (value === null) return {}
  return { arrayValue: { values: value.map(valueOf) } }
}
