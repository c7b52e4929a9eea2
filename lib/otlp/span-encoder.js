'use strict'

// Encodes spans as OTLP (opentelemetry/proto/trace/v1/trace.proto, message Span), straight into the exporter's open chunk. Most server
// and child spans are a copy of a template, followed by the fields that few spans have. Other spans are written attribute by attribute.
// templates.js starts with a picture of these bytes.

const { writeNanos, keepAnchored } = require('../runtime/timers.js')
const { ProtoWriter, writeLength4, writeString, textBound, HAS_IS_REMOTE, IS_REMOTE, attributeBound, attributesBound, writeAttributes, writeAttribute } = require('./proto-writer.js')
const { sharedBound, writeShared } = require('./attribute-template.js')
const { encodeScope, TAG_TRACE_STATE } = require('./request.js')
const {
  HEAD, OFFSET_LENGTH, PARENT_BYTES, TAG_ATTRIBUTE,
  patchHead, RouteTemplates, peerBound, writePeer, nameTemplate, callTemplate, writeRestOfUrl, urlBound, writeUrl
} = require('./templates.js')

const TAG_RUN = 0x12 // ResourceSpans.scope_spans
const RUN_BYTES = 5 // its tag and length
const TAG_NAME = 0x2a
const TAG_DROPPED_ATTRIBUTES = 0x50
const TAG_EVENT = 0x5a
const TAG_LINK = 0x6a
const TAG_STATUS = 0x7a

// The most bytes of a span besides its texts, attributes and details: the head and every tag, length and count.
const SPAN_OVERHEAD = 160
const BEHIND_PEER = PARENT_BYTES + 5 // the parent, and the tag and the length of a trace state

class SpanEncoder {
  /** @param {Pick<Exporter, 'reserve' | 'commit' | 'isLong' | 'spanBytesMax' | 'logCut' | 'dropTooLarge' | 'dropFailed'>} exporter provides the chunks */
  constructor (exporter) {
    this.exporter = exporter
    this.writer = new ProtoWriter()
    this.templates = new RouteTemplates()
  }

  /** Writes one ended span. */
  accept (span) {
    keepAnchored(span.endedAt)
    const template = span.route === undefined ? null : this.templates.find(span)
    if (template !== null && isUsual(span, template)) this.encodeServer(span, template, 0)
    else this.acceptOther(span, template)
  }

  // A separate function, so that V8 has room to inline what most requests need. Without the `try`, a bug here would be thrown by the
  // application's `span.end()`. A usual request span ends inside a guard in lib/fastify/hooks.js; another one would cost it 60 instructions.
  acceptOther (span, routeTemplate) {
    try {
      this.encodeOther(span, routeTemplate)
    } catch (error) {
      this.exporter.dropFailed(error)
    }
    if (span.route !== undefined) span.empty() // but not a call's span: the metrics still read its attributes
  }

  encodeOther (span, routeTemplate) {
    const isNamed = span.details === null || span.details.name === '' // named by its route, its call or its start, and not renamed
    if (isNamed && routeTemplate !== null && span.fitsTemplate) {
      return this.encodeServer(span, routeTemplate, span.errorType.length * 3 + restBound(span))
    }
    const { info } = span // of a call; null for other child spans; undefined for a server span
    const template = !isNamed || info === undefined ? null : info === null ? nameTemplate(span) : callTemplate(info)
    if (template === null) this.encodeWhole(span)
    else this.encodeChild(span, info, template, isUsualChild(span) ? 0 : restBound(span))
  }

  /**
   * Copies the templates and patches ids and times. It does not use the writer, so that positions and memory stay in registers.
   * HOT, once per sampled request. Budget: 0 objects, 0 strings. Proof: bench/micro/span-encoder.bench.js
   * @param {number} rest upper bound of the bytes after the template; 0: only the URL and the parent follow
   */
  encodeServer (span, template, rest) {
    const ofRoute = template.bytes
    const { staticPath } = template
    const { peer } = span
    const tracestate = template.hasTracestate ? '' : span.exportedTracestate
    const chunk = this.open(span, ofRoute.length + peerBound(peer) + (staticPath ? 0 : urlBound(span)) + tracestate.length + BEHIND_PEER + rest)
    if (chunk === null) return
    const { bytes, view, length: start } = chunk
    bytes.set(ofRoute, start)
    let end = start + ofRoute.length
    if (!staticPath) end = writeUrl(bytes, view, end, span)
    if (end === -1) return this.encodeRedacted(span, template, rest)
    end = writePeer(this.writer, chunk, end, peer)
    if (tracestate !== '') end = writeString(bytes, view, end, TAG_TRACE_STATE, tracestate)
    end = patchHead(view, start, end, span)
    if (rest !== 0) end = this.writeServerRest(span, chunk, end)
    this.close(chunk, start, end)
  }

  /** Redacts the query and starts again. */
  encodeRedacted (span, template, rest) {
    span.redact()
    this.encodeServer(span, template, rest)
  }

  /** Does the same as encodeServer for a child span or a call. HOT, once per call. Budget: 0 objects, 0 strings. */
  encodeChild (span, info, template, rest) {
    const { target } = span
    const chunk = this.open(span, template.length + target.length * 3 + PARENT_BYTES + rest)
    if (chunk === null) return
    const { bytes, view, length: start } = chunk
    let end = start + template.length
    bytes.set(template, start)
    if (info !== null && info.origin !== '') end = writeRestOfUrl(bytes, view, start + info.urlOffset, end, target)
    end = patchHead(view, start, end, span)
    if (rest !== 0) {
      this.writer.open(bytes, view, end)
      this.writeTracestate(span)
      end = this.writeRest(span)
    }
    this.close(chunk, start, end)
  }

  encodeWhole (span) {
    const list = span.allAttributes()
    const { details } = span
    const chunk = this.open(span, wholeBound(span, list, details, false))
    if (chunk !== null) this.writeWhole(span, chunk, list, details, span.droppedAttributesCount)
  }

  /** Writes a span whose estimate is longer than a chunk. Counts its texts exactly, and leaves out what exceeds the limit. */
  encodeLong (span) {
    const { exporter } = this
    const runBytes = encodeScope(span.scope).length + RUN_BYTES
    const whole = { list: span.allAttributes(), details: span.details, droppedAttributes: span.droppedAttributesCount }
    let bound = wholeBound(span, whole.list, whole.details, true) + runBytes
    let kept = whole
    if (bound > exporter.spanBytesMax) {
      kept = leaveOutLargest(whole, bound - exporter.spanBytesMax)
      if (kept === null) return exporter.dropTooLarge(bound)
      exporter.logCut(bound)
      bound = wholeBound(span, kept.list, kept.details, true) + runBytes
    }
    const chunk = this.inRun(exporter.reserve(bound, true), span.scope.encoded)
    if (chunk !== null) this.writeWhole(span, chunk, kept.list, kept.details, kept.droppedAttributes)
  }

  writeWhole (span, chunk, list, details, droppedAttributes) {
    const { writer } = this
    const start = chunk.length
    writer.open(chunk.bytes, chunk.view, start)
    writer.copy(HEAD)
    writer.byte(0x30)
    writer.byte(span.kind + 1)
    writer.string(TAG_NAME, span.name)
    writeAttributes(writer, TAG_ATTRIBUTE, list)
    this.writeTracestate(span)
    writeCount(writer, TAG_DROPPED_ATTRIBUTES, droppedAttributes)
    if (details !== null) writeDetails(writer, details)
    this.close(chunk, start, patchHead(chunk.view, start, writer.position, span))
  }

  /**
   * Reserves room in a chunk, under scope_spans of the span's scope. The span starts at the chunk's `length`.
   * @returns {Chunk | null} null: the span is dropped, or was written as a long one
   */
  open (span, bound) {
    const byteCount = bound + encodeScope(span.scope).length + RUN_BYTES
    const chunk = this.exporter.reserve(byteCount)
    if (chunk === null && this.exporter.isLong(byteCount)) this.encodeLong(span)
    return this.inRun(chunk, span.scope.encoded)
  }

  inRun (chunk, scope) {
    if (chunk !== null && chunk.scope !== scope) openRun(this.writer, chunk, scope)
    return chunk
  }

  /**
   * Writes a span that is already encoded.
   * @param {Uint8Array} bytes that contain it
   * @param {{ start: number, end: number, stateStart: number, stateEnd: number }} span
   * @param {Uint8Array} scope as encodeScope makes it
   * @param {string} tracestate replaces its own
   * @param {Uint8Array} attributes additional ones, encoded
   */
  acceptEncoded (bytes, { start: from, end: to, stateStart, stateEnd }, scope, tracestate, attributes) {
    const byteCount = RUN_BYTES + scope.length + to - from + RUN_BYTES + tracestate.length + attributes.length
    const chunk = this.inRun(this.exporter.reserve(byteCount, true), scope)
    if (chunk === null) return
    const { writer } = this
    const start = chunk.length
    writer.open(chunk.bytes, chunk.view, start)
    writer.copy(bytes.subarray(from, stateStart))
    this.writeTracestate({ exportedTracestate: tracestate })
    writer.copy(bytes.subarray(stateEnd, to))
    writer.copy(attributes)
    this.close(chunk, start, writer.position)
  }

  /** Patches the lengths of the span and of its scope_spans, so that the chunk is complete after every span. */
  close (chunk, start, end) {
    const { view, scopeSpansStart } = chunk
    writeLength4(view, start + OFFSET_LENGTH, end - start - 5)
    writeLength4(view, scopeSpansStart, end - scopeSpansStart - 4)
    this.exporter.commit(chunk, end)
  }

  /** Writes the fields of a request's span that are not in the route's template. Returns the end. */
  writeServerRest (span, chunk, at) {
    const { writer } = this
    const { errorType } = span
    writer.open(chunk.bytes, chunk.view, at)
    if (errorType !== '') writeAttribute(writer, TAG_ATTRIBUTE, 'error.type', errorType)
    return this.writeRest(span)
  }

  /** Writes the attributes and details that the application has set on a span. Returns the end. */
  writeRest ({ attributeList, attributeShape, details }) {
    const { writer } = this
    if (attributeList !== null) writeShared(writer, attributeList, attributeShape)
    if (details !== null) {
      writeCount(writer, TAG_DROPPED_ATTRIBUTES, details.droppedAttributes)
      writeDetails(writer, details)
    }
    return writer.position
  }

  writeTracestate ({ exportedTracestate }) {
    if (exportedTracestate !== '') this.writer.string(TAG_TRACE_STATE, exportedTracestate)
  }
}

/** Starts the scope_spans, or scope_logs, of a scope. */
function openRun (writer, chunk, scope) {
  writer.open(chunk.bytes, chunk.view, chunk.length)
  writer.byte(TAG_RUN)
  chunk.scope = scope
  chunk.scopeSpansStart = writer.reserve4()
  writer.copy(scope)
  writer.length4(chunk.scopeSpansStart) // complete even if nothing follows
  chunk.length = writer.position
}

/** Whether the template and the connection's attributes cover all of a span except ids, times, URL, trace state and parent. HOT */
function isUsual (span, { hasWholeUrl, staticPath }) {
  return (staticPath ? hasWholeUrl : span.url.length <= span.pipeline.templateUrlLengthMax) && span.attributeList === null && span.details === null && span.errorType === ''
}

/** Whether a template covers all of a child span except its ids, times and target. HOT */
function isUsualChild (span) {
  return span.attributeList === null && span.details === null && span.tracestate === ''
}

/** Upper bound of what `writeTracestate` and `writeRest` write. HOT */
function restBound ({ exportedTracestate, attributeList, attributeShape, details }) {
  let bound = SPAN_OVERHEAD + exportedTracestate.length
  if (attributeList !== null) bound += sharedBound(attributeList, attributeShape)
  if (details !== null) bound += detailsBound(details, false)
  return bound
}

/** Upper bound of what `writeWhole` writes. If `isExact`, the bytes of short texts are counted too. */
function wholeBound ({ name, exportedTracestate }, list, details, isExact) {
  return SPAN_OVERHEAD + textBound(name, isExact) + exportedTracestate.length + attributesBound(list, isExact) +
    (details === null ? 0 : detailsBound(details, isExact))
}

function detailsBound ({ events, links, statusMessage }, isExact) {
  let bound = 64 + textBound(statusMessage, isExact)
  for (const event of events) bound += eventBound(event, isExact)
  for (const link of links) bound += linkBound(link, isExact)
  return bound
}

function eventBound ({ name, list }, isExact) {
  return 32 + textBound(name, isExact) + attributesBound(list, isExact)
}

function linkBound ({ context, list }, isExact) {
  return 64 + context.tracestate.length + attributesBound(list, isExact)
}

/**
 * Leaves out the largest attributes, events and links, and counts them as dropped. The span itself keeps them, because the user may read
 * it.
 * @typedef {{ list: Array, details: import('../span/recording-span').SpanDetails | null, droppedAttributes: number }} Content
 * @param {Content} whole
 * @param {number} excess how many bytes have to go
 * @returns {Content | null} the rest, or null if dropping all of them would not be enough
 */
function leaveOutLargest ({ list, details, droppedAttributes }, excess) {
  const { events, links } = details ?? { events: [], links: [] }
  const parts = [
    ...events.map((part) => ({ part, bytes: eventBound(part, true) })),
    ...links.map((part) => ({ part, bytes: linkBound(part, true) }))
  ]
  for (let i = 0; i < list.length; i += 2) parts.push({ part: i, bytes: attributeBound(list[i], list[i + 1], true) })
  parts.sort((a, b) => b.bytes - a.bytes)
  const leftOut = new Set()
  for (const { part, bytes } of parts) {
    if (excess <= 0) break
    leftOut.add(part)
    excess -= bytes
  }
  if (excess > 0) return null
  const keptList = list.filter((_, i) => !leftOut.has(i & ~1))
  const kept = { list: keptList, details, droppedAttributes: droppedAttributes + (list.length - keptList.length) / 2 }
  if (details === null) return kept
  const isKept = (part) => !leftOut.has(part)
  kept.details = { ...details, events: events.filter(isKept), links: links.filter(isKept) }
  kept.details.droppedEvents += events.length - kept.details.events.length
  kept.details.droppedLinks += links.length - kept.details.links.length
  return kept
}

function writeDetails (writer, { events, links, droppedEvents, droppedLinks, statusCode, statusMessage }) {
  for (const event of events) writeEvent(writer, event)
  writeCount(writer, 0x60, droppedEvents)
  for (const link of links) writeLink(writer, link)
  writeCount(writer, 0x70, droppedLinks)
  if (statusCode === 0) return
  writer.byte(TAG_STATUS)
  const at = writer.reserve4()
  if (statusMessage !== '') writer.string(0x12, statusMessage)
  writer.byte(0x18)
  writer.byte(statusCode)
  writer.length4(at)
}

function writeEvent (writer, { name, time, list, droppedAttributesCount }) {
  writer.byte(TAG_EVENT)
  const at = writer.reserve4()
  writer.byte(0x09)
  writeNanos(writer.view, writer.position, time)
  writer.position += 8
  writer.string(0x12, name)
  writeAttributes(writer, 0x1a, list)
  writeCount(writer, 0x20, droppedAttributesCount)
  writer.length4(at)
}

function writeLink (writer, { context, list, droppedAttributesCount }) {
  writer.byte(TAG_LINK)
  const at = writer.reserve4()
  writer.byte(0x0a)
  writer.byte(16)
  writer.position += writer.bytes.hexWrite(context.traceId, writer.position)
  writer.byte(0x12)
  writer.byte(8)
  writer.position += writer.bytes.hexWrite(context.spanId, writer.position)
  if (context.tracestate !== '') writer.string(0x1a, context.tracestate)
  writeAttributes(writer, 0x22, list)
  writeCount(writer, 0x28, droppedAttributesCount)
  writer.byte(0x35)
  writer.fixed32(context.flags | HAS_IS_REMOTE | (context.remote ? IS_REMOTE : 0))
  writer.length4(at)
}

function writeCount (writer, tag, count) {
  if (count === 0) return
  writer.byte(tag)
  writer.varint(count)
}

module.exports = { SpanEncoder, openRun, RUN_BYTES }
