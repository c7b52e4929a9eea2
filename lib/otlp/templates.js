'use strict'

// Encodes once what spans have in common, per route, connection, name or called service. A span is a copy of this template, patched:
//
//   00  12 80 80 80 00                ScopeSpans.spans, padded length      patched
//   05  0A 10 ................        trace_id                             patched
//   17  12 08 ........                span_id                              patched
//   21  39 ........ 41 ........       start, end, fixed64                  patched
//   39  85 01 ....                    flags, fixed32                       patched
//   ..  30 02 2A .. name 4A ... 4A ...    kind, name, attributes               copied

const { Buffer } = require('node:buffer')
const { PARENT_NONE, PARENT_REMOTE } = require('../context/trace-context.js')
const { writeNanos } = require('../runtime/timers.js')
const { ownText } = require('../span/attributes.js')
const { SPAN_KIND_SERVER } = require('../span/server-span.js')
const { writeLength4, writeText, HAS_IS_REMOTE, IS_REMOTE, writeAttributes, encodeAttributes, text } = require('./proto-writer.js')
const { TAG_TRACE_STATE } = require('./request.js')

const OFFSET_LENGTH = 1
const OFFSET_TRACE_ID = 7
const OFFSET_SPAN_ID = 25
const OFFSET_START = 34
const OFFSET_END = 43
const OFFSET_FLAGS = 53

const TAG_PARENT = 0x22
const PARENT_BYTES = 10
const TAG_ATTRIBUTE = 0x4a // Span.attributes
const NOTHING = Buffer.alloc(0)

// The fixed part of a span, with room for ids, times and flags.
const HEAD = Buffer.alloc(OFFSET_FLAGS + 4)
HEAD[0] = 0x12
HEAD.set([0x0a, 16], OFFSET_TRACE_ID - 2)
HEAD.set([0x12, 8], OFFSET_SPAN_ID - 2)
HEAD[OFFSET_START - 1] = 0x39
HEAD[OFFSET_END - 1] = 0x41
HEAD.set([0x85, 0x01], OFFSET_FLAGS - 2)

const TEMPLATES_PER_ROUTE_MAX = 32 // a route may answer with a dozen statuses over two schemes; rarer combinations are encoded each time
const TEMPLATES_MAX = 10000 // of about 250 bytes each

/** Writes ids and times, and the parent at `end`. Returns the span's new end. HOT */
function patchHead (view, start, end, span) {
  view.setInt32(start + OFFSET_TRACE_ID, span.t0)
  view.setInt32(start + OFFSET_TRACE_ID + 4, span.t1)
  view.setInt32(start + OFFSET_TRACE_ID + 8, span.t2)
  view.setInt32(start + OFFSET_TRACE_ID + 12, span.t3)
  view.setInt32(start + OFFSET_SPAN_ID, span.s0)
  view.setInt32(start + OFFSET_SPAN_ID + 4, span.s1)
  writeNanos(view, start + OFFSET_START, span.start)
  writeNanos(view, start + OFFSET_END, span.endedAt)
  view.setInt32(start + OFFSET_FLAGS, span.flags | HAS_IS_REMOTE | (span.parentKind === PARENT_REMOTE ? IS_REMOTE : 0), true)
  if (span.parentKind === PARENT_NONE) return end
  view.setInt16(end, TAG_PARENT << 8 | 8)
  view.setInt32(end + 2, span.p0)
  view.setInt32(end + 6, span.p1)
  return end + PARENT_BYTES
}

/**
 * A route has one template for each scheme, protocol version and status that it was seen with. If the sampler writes the same trace
 * state into every trace that starts here, a second template of each includes this trace state.
 */
class RouteTemplate {
  constructor (span, staticPath, hasTracestate) {
    this.httpStatus = span.httpStatus
    this.protocolVersion = span.peer.protocolVersion
    this.scheme = span.peer.scheme
    this.staticPath = staticPath
    this.hasWholeUrl = staticPath && span.url.length <= span.pipeline.templateUrlLengthMax // and is not truncated
    this.hasTracestate = hasTracestate
    this.bytes = encodeTemplate(span, staticPath, hasTracestate)
    this.next = null
  }
}

class RouteTemplates {
  count = 0

  /** Returns the template that fits `span`, or null when there are too many. HOT, once per sampled request. */
  find (span) {
    const { route, peer, httpStatus, tracestate } = span
    const { protocolVersion, scheme } = peer
    const staticPath = span.url === route.route
    const hasTracestate = tracestate !== '' && span.exportedTracestate === span.pipeline.rootTracestate
    let template = route.encoded
    while (template !== null && (template.httpStatus !== httpStatus || template.staticPath !== staticPath ||
      template.hasTracestate !== hasTracestate || template.protocolVersion !== protocolVersion ||
      template.scheme !== scheme)) template = template.next
    return template === null ? this.add(span, staticPath, hasTracestate) : template
  }

  add (span, staticPath, hasTracestate) {
    const { route } = span
    if (lengthOf(route.encoded) >= TEMPLATES_PER_ROUTE_MAX || this.count >= TEMPLATES_MAX) return null
    const template = new RouteTemplate(span, staticPath, hasTracestate)
    if (route.encoded === null) route.encoded = template
    else { // after the first, which is usually the most frequent one
      template.next = route.encoded.next
      route.encoded.next = template
    }
    this.count++
    return template
  }
}

function lengthOf (template) {
  let length = 0
  for (; template !== null; template = template.next) length++
  return length
}

function encodeTemplate ({ route, peer, url, httpStatus, pipeline }, staticPath, hasTracestate) {
  const list = [...route.requestAttributes(peer, staticPath ? url : null), ...route.attributeList]
  if (httpStatus !== 0) list.push('http.response.status_code', httpStatus)

  return new Uint8Array(Buffer.concat([
    headOf(SPAN_KIND_SERVER, route.name),
    encodeAttributes(TAG_ATTRIBUTE, pipeline.shown(list)),
    hasTracestate ? text(TAG_TRACE_STATE, pipeline.rootTracestate) : NOTHING,
    staticPath ? NOTHING : PATH
  ]))
}

/** Returns the first bytes of a span: head, kind and name. */
function headOf (kind, name) {
  return Buffer.concat([HEAD, Buffer.from([0x30, kind + 1]), text(0x2a, name)])
}

// Names may contain user data. Names beyond these limits are encoded each time.
const NAMES_MAX = 1000
const NAME_LENGTH_MAX = 100

const byKind = [new Map(), new Map(), new Map(), new Map(), new Map()]
let count = 0

/**
 * Returns head, kind and name of a span that was started by its name alone. HOT, once per child span.
 * @returns {Uint8Array | null} null: the limits are reached
 */
function nameTemplate ({ title, kind }) {
  return byKind[kind].get(title) ?? encodeName(title, kind)
}

function encodeName (name, kind) {
  if (count === NAMES_MAX || name.length > NAME_LENGTH_MAX) return null
  count++
  const bytes = new Uint8Array(headOf(kind, name))
  byKind[kind].set(ownText(name), bytes)
  return bytes
}

const PATCHED_LENGTH = [0, 0, 0, 0] // a length that `writeRestOfUrl` patches

/**
 * Returns head, kind, name and shared attributes of a call's span. It ends with an open attribute: the origin of the call's URL, or the
 * name of its Redis command. The rest of the value is written right after it.
 *
 *   4A 00 00 00 00 | 0A 08 "url.full" | 12 00 00 00 00 | 0A 00 00 00 00 "http://stock:3000"
 *
 * HOT, once per call.
 * @param {CallInfo} info
 */
function callTemplate (info) {
  return info.encoded ?? encodeCall(info)
}

function encodeCall (info) {
  const shared = Buffer.concat([headOf(info.kind, info.name), encodeAttributes(TAG_ATTRIBUTE, info.attributeList)])
  info.urlOffset = shared.length + 1
  info.encoded = new Uint8Array(info.origin === '' ? shared : Buffer.concat([shared, openAttribute(info.openKey, info.origin)]))
  return info.encoded
}

function openAttribute (key, origin) {
  return Buffer.concat([Buffer.from([TAG_ATTRIBUTE, ...PATCHED_LENGTH]), text(0x0a, key), Buffer.from([0x12, ...PATCHED_LENGTH, 0x0a, ...PATCHED_LENGTH]), Buffer.from(origin)])
}

/**
 * Completes an open attribute: writes the rest of its value (a URL, a command or another text) at `position`, where the template ends,
 * and its length at `at`. Returns the end. HOT
 */
function writeRestOfUrl (bytes, view, at, position, target) {
  const end = writeText(bytes, position, target)
  closeAttribute(view, at, at + 4 + 2 + bytes[at + 5] + 1, end) // after the key and its length
  return end
}

/** Writes the lengths of an open attribute: its own at `at`, and those of its value and text from `valueAt` on. */
function closeAttribute (view, at, valueAt, end) {
  writeLength4(view, valueAt + 5, end - valueAt - 9)
  writeLength4(view, valueAt, end - valueAt - 4)
  writeLength4(view, at, end - at - 4)
}

// If a route's requests have different paths, its template ends with this open attribute, and the path is written after it.
const PATH = openAttribute('url.path', '')
const QUERY = new Uint8Array(openAttribute('url.query', ''))
const VALUE_BEFORE = 9 // bytes from the length of an open attribute's value to its text
const QUESTION_MARK = 0x3f
const GROWTH = 64 // room for a query whose values become longer when they are redacted

/** Upper bound of what `writeUrl` writes. Calls a `redactQuery` function first, because it may end other spans. HOT */
function urlBound (span) {
  const { url, redacted, pipeline } = span
  const bound = QUERY.length + url.length * 3 + GROWTH
  return redacted === null && !pipeline.redactor.asksUser ? bound : bound + span.query.length * 3
}

/**
 * Writes the path and the query of a request after its route's template, which has neither. The URL is written once, so that its query
 * is already in place. Then its path is moved down to the template:
 *
 *   template |                               /path?query
 *   template | /path | 4A .... "url.query" .... | query
 *
 * Returns the end, or -1 if the query must first be redacted through span.query. HOT
 */
function writeUrl (bytes, view, at, span) {
  if (span.redacted !== null) return writeRedacted(bytes, view, at, span)
  let read = at + QUERY.length - 1
  const urlEnd = writeText(bytes, read, span.url)
  let pathEnd = at
  for (; read < urlEnd; read++) {
    const byte = bytes[read]
    if (byte === QUESTION_MARK) break
    bytes[pathEnd++] = byte
  }
  closeAttribute(view, at - PATH.length + 1, at - VALUE_BEFORE, pathEnd)
  if (read + 1 >= urlEnd) return pathEnd // nothing after the question mark
  const start = read + 1
  const { redactor, templateUrlLengthMax } = span.pipeline
  const end = redactor.redactBytes(bytes, view, start, urlEnd, GROWTH)
  if (end === -1 || end - start > templateUrlLengthMax) return -1
  bytes.set(QUERY, pathEnd)
  closeAttribute(view, pathEnd + 1, start - VALUE_BEFORE, end)
  return end
}

function writeRedacted (bytes, view, at, { url, redacted }) {
  const mark = url.indexOf('?')
  const pathEnd = writeRestOfUrl(bytes, view, at - PATH.length + 1, at, mark === -1 ? url : url.slice(0, mark))
  if (redacted === '') return pathEnd
  bytes.set(QUERY, pathEnd)
  return writeRestOfUrl(bytes, view, pathEnd + 1, pathEnd + QUERY.length, redacted)
}

// The attributes of a connection and its client are written straight into the span, because behind a proxy each request may have a
// different client. A place or client that is seen a second time is kept as bytes, which are copied from then on. The bytes of a place
// end with an open attribute for the client's address.
//
//   network.peer.port | network.peer.address | server.address | server.port | client.address        user_agent.original

const PORT = 'network.peer.port'
const PORT_AT = text(0x0a, PORT).length + 5 // the offset of the port in the first attribute, if a place has one
const WIDE_PORT = 0xffff // takes three bytes, and so all ports are written with three
const CLIENT_ADDRESS = openAttribute('client.address', '')
const USER_AGENT = new Uint8Array(openAttribute('user_agent.original', ''))
const PEER_OVERHEAD = 350 // for everything except the texts that a client or its connection may make long

/** Upper bound of what `writePeer` writes. HOT */
function peerBound ({ encoded, place, clientAddress, userAgent }) {
  return encoded !== null
    ? encoded.length
    : PEER_OVERHEAD + (clientAddress.length + place.peerAddress.length + place.serverAddress.length + userAgent.length) * 3
}

/** Writes the attributes that a connection adds to the spans of its requests. Returns the end. HOT, once per sampled request. */
function writePeer (writer, { bytes, view }, at, peer) {
  if (peer.encoded === null) return encodePeer(writer, bytes, view, at, peer)
  bytes.set(peer.encoded, at)
  return at + peer.encoded.length
}

function encodePeer (writer, bytes, view, at, peer) {
  const { place, clientAddress, peerPort, userAgent } = peer
  if (!place.isKnown) {
    place.isKnown = true
    writer.open(bytes, view, at)
    writeAttributes(writer, TAG_ATTRIBUTE, peer.attributeList)
    return writer.position
  }
  place.encoded ??= encodePlace(place)
  bytes.set(place.encoded, at)
  if (peerPort !== -1 && place.peerAddress !== '') writePort(bytes, at + PORT_AT, peerPort)
  let end = at + place.encoded.length
  if (clientAddress === '') end -= CLIENT_ADDRESS.length
  else end = writeRestOfUrl(bytes, view, end - CLIENT_ADDRESS.length + 1, end, clientAddress)
  if (userAgent !== '') {
    bytes.set(USER_AGENT, end)
    end = writeRestOfUrl(bytes, view, end + 1, end + USER_AGENT.length, userAgent)
  }
  if (peer.isKnown) peer.encoded = new Uint8Array(bytes.subarray(at, end))
  else peer.isKnown = true
  return end
}

function encodePlace ({ peerAddress, hasPort, serverAddress, serverPort }) {
  const list = []
  if (peerAddress !== '') {
    if (hasPort) list.push(PORT, WIDE_PORT)
    list.push('network.peer.address', peerAddress)
  }
  if (serverAddress !== '') {
    list.push('server.address', serverAddress)
    if (serverPort !== -1) list.push('server.port', serverPort)
  }
  return new Uint8Array(Buffer.concat([encodeAttributes(TAG_ATTRIBUTE, list), CLIENT_ADDRESS]))
}

/** Writes a varint of exactly three bytes. */
function writePort (bytes, at, port) {
  bytes[at] = port & 0x7f | 0x80
  bytes[at + 1] = port >> 7 & 0x7f | 0x80
  bytes[at + 2] = port >> 14
}

module.exports = {
  OFFSET_END,
  HEAD,
  OFFSET_LENGTH,
  PARENT_BYTES,
  TAG_ATTRIBUTE,
  patchHead,
  RouteTemplates,
  peerBound,
  writePeer,
  nameTemplate,
  callTemplate,
  writeRestOfUrl,
  urlBound,
  writeUrl
}
