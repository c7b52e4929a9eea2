'use strict'

// Spans to OTLP bytes (opentelemetry/proto/trace/v1/trace.proto, message Span), straight into the
// exporter's open chunk. The usual server span is a template copied and patched; every other span is
// written field by field behind the same head.

const { writeNanos, keepAnchored } = require('../span/clock')
const { PARENT_NONE, PARENT_REMOTE } = require('../context/trace-context')
const { ProtoWriter, writeLength4, textBound } = require('./proto-writer')
const { detailsBound, writeDetails, writeCount, HAS_IS_REMOTE, IS_REMOTE } = require('./details-encoder')
const { attributesBound, writeAttributes, writeAttribute } = require('./attribute-encoder')
const { sharedBound, writeShared } = require('./attribute-template')
const { encodeScope } = require('./export-request-prefix')
const { callTemplate, writeRestOfUrl } = require('./call-template')
const { nameTemplate } = require('./name-template')
const { sharedLength, copyShared } = require('./peer-template')
const { spanLength, cutToFit } = require('./long-span')
const {
  RouteTemplates, writeHead, TAG_ATTRIBUTE, TAG_TRACE_STATE,
  OFFSET_LENGTH, OFFSET_TRACE_ID, OFFSET_SPAN_ID, OFFSET_START, OFFSET_END, OFFSET_FLAGS
} = require('./route-template')

const TAG_RUN = 0x12 // ResourceSpans.scope_spans
const RUN_BYTES = 5 // its tag and length
const TAG_PARENT = 0x22
const TAG_NAME = 0x2a
const TAG_DROPPED_ATTRIBUTES = 0x50

const PARENT_BYTES = 10
// Head, parent, trace state's and path's tags and lengths, status, dropped counts.
const SPAN_OVERHEAD = 192

class SpanEncoder {
  /** @param {Exporter} exporter whose chunks are written */
  constructor (exporter) {
    this.exporter = exporter
    this.writer = new ProtoWriter()
    this.templates = new RouteTemplates()
  }

  /** Writes one ended span. Never throws for what a span can hold. */
  accept (span) {
    keepAnchored(span.endedAt)
    const template = span.route === undefined ? null : this.templates.find(span)
    if (template !== null && isUsual(span, template)) this.encodeUsual(span, template)
    else this.acceptOther(span, template)
  }

  // Of its own, so that V8 has room to inline what most requests need.
  acceptOther (span, routeTemplate) {
    const isNamed = span.details === null || span.details.name === '' // as the route, the call or at its start
    if (isNamed && routeTemplate !== null && span.fitsTemplate) {
      this.encodeFromTemplate(span, routeTemplate)
      return
    }
    const { info } = span // undefined: a server span
    if (isNamed && info !== undefined) {
      const template = info === null ? nameTemplate(span) : callTemplate(info)
      if (template !== null) {
        if (isUsualChild(span)) this.encodeUsualChild(span, info, template)
        else this.encodeChild(span, info, template)
        return
      }
    }
    this.encodeWhole(span)
  }

  /**
   * A span of which nothing but ids, times and the parent is its own. Not through the writer: positions and memory stay in
   * registers. HOT, once per sampled request. Budget: 0 objects, 0 strings. Proof: bench/micro/span-encoder.bench.js
   */
  encodeUsual (span, template) {
    const { peer } = span
    const length = sharedLength(peer, template)
    const scope = encodeScope(span.scope)
    const byteCount = length + scope.length + PARENT_BYTES + RUN_BYTES
    const chunk = this.exporter.reserve(byteCount)
    if (chunk === null) {
      if (this.exporter.isLong(byteCount)) this.encodeLong(span)
      return
    }
    const { bytes, view } = chunk
    const start = chunk.scope === scope ? chunk.length : this.openRun(chunk, scope)
    let end = start + length
    copyShared(bytes, start, peer, template)
    patchHead(view, start, span)
    if (span.parentKind !== PARENT_NONE) {
      writeParent(view, end, span)
      end += PARENT_BYTES
    }
    this.close(chunk, start, end)
  }

  // HOT, once per sampled request with a path, attributes or an error of its own. Budget: 0 objects, 0 strings.
  encodeFromTemplate (span, template) {
    const length = sharedLength(span.peer, template)
    const mark = template.staticPath ? -1 : span.url.indexOf('?')
    const query = mark === -1 ? '' : span.query // may run code of the user's: nothing is open yet
    const chunk = this.open(span, length + tailBound(span) + usersBound(span))
    if (chunk === null) return
    const { writer } = this
    const start = writer.position
    copyShared(chunk.bytes, start, span.peer, template)
    writer.position = start + length
    if (!template.staticPath) this.writePathAndQuery(span.url, mark, query)
    if (!template.hasTracestate) this.writeTracestate(span)
    this.writeTail(span, start)
    this.close(chunk, start, writer.position)
  }

  /**
   * A child span or a call that has nothing of its own but ids, times, and the rest of a URL or a command. As encodeUsual: not through
   * the writer. HOT, once per call. Budget: 0 objects, 0 strings.
   */
  encodeUsualChild (span, info, template) {
    const { target } = span
    const { length } = template
    const scope = encodeScope(span.scope)
    const byteCount = length + target.length * 3 + scope.length + PARENT_BYTES + RUN_BYTES
    const chunk = this.exporter.reserve(byteCount)
    if (chunk === null) {
      if (this.exporter.isLong(byteCount)) this.encodeLong(span)
      return
    }
    const { bytes, view } = chunk
    const start = chunk.scope === scope ? chunk.length : this.openRun(chunk, scope)
    let end = start + length
    bytes.set(template, start)
    if (info !== null && info.origin !== '') end = writeRestOfUrl(bytes, view, start + info.urlOffset, end, target)
    patchHead(view, start, span)
    if (span.parentKind !== PARENT_NONE) {
      writeParent(view, end, span)
      end += PARENT_BYTES
    }
    this.close(chunk, start, end)
  }

  // HOT, once per child span with attributes or a status of its own.
  encodeChild (span, info, template) {
    const { target } = span
    const chunk = this.open(span, template.length + target.length * 3 + tailBound(span) + usersBound(span))
    if (chunk === null) return
    const { writer } = this
    const start = writer.position
    writer.copy(template)
    if (info !== null && info.origin !== '') writer.position = writeRestOfUrl(chunk.bytes, chunk.view, start + info.urlOffset, writer.position, target)
    if (span.attributeList !== null) writeShared(writer, span.attributeList, span.attributeShape)
    this.writeTracestate(span)
    this.writeTail(span, start, true)
    this.close(chunk, start, writer.position)
  }

  encodeWhole (span) {
    const list = span.allAttributes()
    const isUsers = list === span.attributeList
    const chunk = this.open(span, (isUsers ? usersBound(span) : attributesBound(list)) + textBound(span.name) + tailBound(span))
    if (chunk !== null) this.writeWhole(span, chunk, list, isUsers)
  }

  /** A span whose estimate is longer than a chunk, by its real length. */
  encodeLong (span) {
    const { exporter } = this
    const scope = encodeScope(span.scope)
    const runBytes = scope.length + RUN_BYTES
    const lengthMax = exporter.spanBytesMax - runBytes
    const length = spanLength(span)
    let fitting = span
    if (length > lengthMax) {
      fitting = cutToFit(span, length, lengthMax)
      if (fitting === null) return exporter.dropTooLarge(length)
      exporter.logCut(length, fitting.valueLengthMax)
    }
    const chunk = exporter.reserveCounted((fitting === span ? length : spanLength(fitting)) + runBytes)
    if (chunk === null) return
    this.writer.open(chunk.bytes, chunk.view, chunk.scope === scope ? chunk.length : this.openRun(chunk, scope))
    this.writeWhole(fitting, chunk, fitting.allAttributes(), false)
  }

  /** @param {boolean} isShared whether the room was counted by `usersBound` */
  writeWhole (span, chunk, list, isShared) {
    const { writer } = this
    const start = writer.position
    writeHead(writer)
    writer.byte(0x30)
    writer.byte(span.kind + 1)
    writer.string(TAG_NAME, span.name)
    if (isShared) writeShared(writer, list, span.attributeShape)
    else writeAttributes(writer, TAG_ATTRIBUTE, list)
    this.writeTracestate(span)
    this.writeTail(span, start, true)
    this.close(chunk, start, writer.position)
  }

  /**
   * Room in a chunk, and scope_spans of the span's scope in it.
   * @returns {Chunk | null} null: the span is dropped, or was written as a long one
   */
  open (span, bound) {
    const scope = encodeScope(span.scope)
    const byteCount = bound + scope.length + RUN_BYTES
    const chunk = this.exporter.reserve(byteCount)
    if (chunk === null) {
      if (this.exporter.isLong(byteCount)) this.encodeLong(span)
      return null
    }
    this.writer.open(chunk.bytes, chunk.view, chunk.scope === scope ? chunk.length : this.openRun(chunk, scope))
    return chunk
  }

  /** @returns {number} where its first span begins */
  openRun (chunk, scope) {
    const { writer } = this
    writer.open(chunk.bytes, chunk.view, chunk.length)
    writer.byte(TAG_RUN)
    chunk.scope = scope
    chunk.scopeSpansStart = writer.reserve4()
    writer.copy(scope)
    return writer.position
  }

  /** Patches the lengths of the span and of its scope_spans, so that the chunk is whole after every span. */
  close (chunk, start, end) {
    const { view, scopeSpansStart } = chunk
    writeLength4(view, start + OFFSET_LENGTH, end - start - 5)
    writeLength4(view, scopeSpansStart, end - scopeSpansStart - 4)
    this.exporter.commit(chunk, end)
  }

  writePathAndQuery (url, mark, query) {
    const { writer } = this
    writeAttribute(writer, TAG_ATTRIBUTE, 'url.path', mark === -1 ? url : url.slice(0, mark))
    if (query !== '') writeAttribute(writer, TAG_ATTRIBUTE, 'url.query', query)
  }

  /** What varies: ids and times in the head, and behind everything what few spans have. */
  writeTail (span, start, whole) {
    const { writer } = this
    const { view } = writer
    patchHead(view, start, span)
    if (span.parentKind !== PARENT_NONE) {
      writeParent(view, writer.position, span)
      writer.position += PARENT_BYTES
    }
    if (whole !== true) {
      if (span.errorType !== '') writeAttribute(writer, TAG_ATTRIBUTE, 'error.type', span.errorType)
      if (span.attributeList !== null) writeShared(writer, span.attributeList, span.attributeShape)
    }
    if (whole === true || span.details !== null) writeCount(writer, TAG_DROPPED_ATTRIBUTES, span.droppedAttributesCount)
    if (span.details !== null) writeDetails(writer, span.details)
  }

  writeTracestate ({ exportedTracestate }) {
    if (exportedTracestate !== '') this.writer.string(TAG_TRACE_STATE, exportedTracestate)
  }
}

/** Whether a template and the connection's block say all of a span but its ids and times. HOT */
function isUsual (span, { isWhole, hasTracestate }) {
  return isWhole && span.attributeList === null && span.details === null && span.errorType === '' &&
    (hasTracestate || span.tracestate === '')
}

/** Whether a template says all of a child span but its ids, its times and its target. HOT */
function isUsualChild (span) {
  return span.attributeList === null && span.details === null && span.tracestate === ''
}

/** Ids and times. HOT */
function patchHead (view, start, span) {
  view.setInt32(start + OFFSET_TRACE_ID, span.t0)
  view.setInt32(start + OFFSET_TRACE_ID + 4, span.t1)
  view.setInt32(start + OFFSET_TRACE_ID + 8, span.t2)
  view.setInt32(start + OFFSET_TRACE_ID + 12, span.t3)
  view.setInt32(start + OFFSET_SPAN_ID, span.s0)
  view.setInt32(start + OFFSET_SPAN_ID + 4, span.s1)
  writeNanos(view, start + OFFSET_START, span.start)
  writeNanos(view, start + OFFSET_END, span.endedAt)
  view.setInt32(start + OFFSET_FLAGS, span.flags | HAS_IS_REMOTE | (span.parentKind === PARENT_REMOTE ? IS_REMOTE : 0), true)
}

/** HOT, once per request with a caller. */
function writeParent (view, at, span) {
  view.setInt16(at, TAG_PARENT << 8 | 8)
  view.setInt32(at + 2, span.p0)
  view.setInt32(at + 6, span.p1)
}

/** Upper bound of what the attributes that the application has set take. HOT */
function usersBound ({ attributeList, attributeShape }) {
  return attributeList === null ? 0 : sharedBound(attributeList, attributeShape)
}

/** Upper bound of what `writePathAndQuery` and `writeTail` write beside these. HOT */
function tailBound (span) {
  let bound = SPAN_OVERHEAD + span.exportedTracestate.length
  // Redaction may lengthen a query, by eight bytes for each parameter of at least two.
  if (span.url !== undefined) bound += span.url.length * 7 + span.errorType.length * 3
  if (span.details !== null) bound += detailsBound(span.details)
  return bound
}

module.exports = { SpanEncoder }
