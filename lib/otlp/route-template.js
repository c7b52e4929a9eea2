'use strict'

// What the spans of one route have in common, encoded once. A request copies it and patches four places:
//
//   00  12 80 80 80 00                ScopeSpans.spans, padded length      patched
//   05  0A 10 ................        trace_id                             patched
//   17  12 08 ........                span_id                              patched
//   21  39 ........ 41 ........       start, end, fixed64                  patched
//   39  85 01 ....                    flags, fixed32                       patched
//   ..  30 02 2A .. name 4A … 4A …    kind, name, attributes               copied
//
// There is one template for each scheme, protocol version and status that the route was seen with; and one more of each
// where the sampler writes the same trace state into every trace that starts here, which is then copied too.

const { Buffer } = require('node:buffer')
const { ProtoWriter } = require('./proto-writer')
const { encodeAttributes, text } = require('./attribute-encoder')

const OFFSET_LENGTH = 1
const OFFSET_TRACE_ID = 7
const OFFSET_SPAN_ID = 25
const OFFSET_START = 34
const OFFSET_END = 43
const OFFSET_FLAGS = 53

const TAG_ATTRIBUTE = 0x4a
const TAG_TRACE_STATE = 0x1a
const KIND_SERVER = Buffer.from([0x30, 2])
const NOTHING = Buffer.alloc(0)

// A route that answers with more kinds of status than this has its rarer ones encoded anew each time.
const TEMPLATES_PER_ROUTE_MAX = 8
// Bounds the memory of an application with very many routes: about 250 bytes each.
const TEMPLATES_MAX = 10000

class RouteTemplate {
  constructor (span, staticPath, hasTracestate) {
    this.statusAndProtocol = span.httpStatus + span.peer.protocol
    this.staticPath = staticPath
    this.isWhole = staticPath && span.url.length <= span.pipeline.templateUrlLengthMax // and uncut
    this.hasTracestate = hasTracestate
    this.bytes = encodeTemplate(span, staticPath, hasTracestate)
    this.next = null
  }
}

class RouteTemplates {
  constructor () {
    this.count = 0
  }

  /** The template that fits `span`, or null when there are too many. HOT, once per sampled request. */
  find (span) {
    const { route, tracestate } = span
    const staticPath = span.url === route.route
    const hasTracestate = tracestate !== '' && isRoots(span)
    const statusAndProtocol = span.httpStatus + span.peer.protocol
    let template = route.encoded
    while (template !== null && (template.statusAndProtocol !== statusAndProtocol || template.staticPath !== staticPath ||
      template.hasTracestate !== hasTracestate)) template = template.next
    return template === null ? this.add(span, staticPath, hasTracestate) : template
  }

  add (span, staticPath, hasTracestate) {
    const { route } = span
    if (span.peer.protocol < 0 || lengthOf(route.encoded) >= TEMPLATES_PER_ROUTE_MAX || this.count >= TEMPLATES_MAX) return null
    const template = new RouteTemplate(span, staticPath, hasTracestate)
    // Behind the first: the first one seen is most often the usual one.
    if (route.encoded === null) {
      route.encoded = template
    } else {
      template.next = route.encoded.next
      route.encoded.next = template
    }
    this.count++
    return template
  }
}

/** Whether its trace state is what the sampler writes into every trace that starts here. */
function isRoots (span) {
  return span.exportedTracestate === span.pipeline.rootTracestate
}

function lengthOf (template) {
  let length = 0
  for (; template !== null; template = template.next) length++
  return length
}

function encodeTemplate ({ route, peer, url, httpStatus, pipeline }, staticPath, hasTracestate) {
  const list = ['http.request.method', route.method]
  if (route.methodOriginal !== '') list.push('http.request.method_original', route.methodOriginal)
  if (route.route !== '') list.push('http.route', route.route)
  if (staticPath) list.push('url.path', url)
  list.push('url.scheme', peer.scheme)
  if (peer.protocolVersion !== '') list.push('network.protocol.version', peer.protocolVersion)
  list.push(...route.attributeList)
  if (httpStatus !== 0) list.push('http.response.status_code', httpStatus)

  const head = Buffer.alloc(OFFSET_FLAGS + 4)
  const writer = new ProtoWriter()
  writer.open(head, new DataView(head.buffer, head.byteOffset, head.length), 0)
  writeHead(writer)
  return new Uint8Array(Buffer.concat([
    head, KIND_SERVER, text(0x2a, route.name), encodeAttributes(TAG_ATTRIBUTE, list), hasTracestate ? text(TAG_TRACE_STATE, pipeline.rootTracestate) : NOTHING
  ]))
}

/** The fixed part of a span, with room where ids, times and flags go. */
function writeHead (writer) {
  const { view, position } = writer
  writer.byte(0x12)
  writer.position = position + 5
  writer.byte(0x0a)
  writer.byte(16)
  writer.position = position + OFFSET_SPAN_ID - 2
  writer.byte(0x12)
  writer.byte(8)
  writer.position = position + OFFSET_START - 1
  writer.byte(0x39)
  writer.position = position + OFFSET_END - 1
  writer.byte(0x41)
  writer.position = position + OFFSET_FLAGS - 2
  writer.byte(0x85)
  writer.byte(0x01)
  view.setInt32(writer.position, 0, true)
  writer.position += 4
}

module.exports = {
  RouteTemplates,
  writeHead,
  TAG_ATTRIBUTE,
  TAG_TRACE_STATE,
  OFFSET_LENGTH,
  OFFSET_TRACE_ID,
  OFFSET_SPAN_ID,
  OFFSET_START,
  OFFSET_END,
  OFFSET_FLAGS
}
