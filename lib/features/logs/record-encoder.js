'use strict'

// Encodes lines of pino, and events, to OTLP bytes in the exporter's open chunk.
//
// It reads the finished line, not the logged objects. So nothing is exported that redaction, a serializer or a formatter has removed.

const { cut } = require('../../span/attributes.js')
const { keepAnchored, writeNanos } = require('../../runtime/timers.js')
const { ProtoWriter, writeLength4, attributesBound, valueBound, writeAttributes, writeValue } = require('../../otlp/proto-writer.js')
const { openRun, RUN_BYTES } = require('../../otlp/span-encoder.js')
const { encodeScope } = require('../../otlp/request.js')
const { DEPTH_MAX } = require('./json-values.js')
const { UsualLine, OmittingLine, HEAD_BYTES, TAG_RECORD, TAG_BODY, TAG_ATTRIBUTE } = require('./usual-line.js')
const { contentOf, addInherited } = require('./plain.js')

const TAG_SEVERITY_TEXT = 0x1a
const TAG_DROPPED_ATTRIBUTES = 0x38
const TAG_EVENT_NAME = 0x62

const RECORD_OVERHEAD = 200 // times, severity, ids

class RecordEncoder {
  #exporter
  #limits
  #names
  #usual // for lines in pino's usual form, which are encoded without JSON.parse
  #usualWriter = new ProtoWriter() // writes into the memory of #usual
  #writer = new ProtoWriter()

  /**
   * @param {{ messageKey: string, errorKey: string, omit?: import('../omit').Omission | null }} names of the members that are the message and the error
   */
  constructor (exporter, limits, names) {
    this.#exporter = exporter
    this.#limits = limits
    this.#names = names
    this.#usual = names.omit ? new OmittingLine(limits, names, names.omit) : new UsualLine(limits, names)
    this.#usualWriter.open(this.#usual.bytes, this.#usual.view, 0)
  }

  /** Writes one record. HOT, once per line where lines are exported. Budget: 0 objects. @param {import('./tap').LoggedLine} logged */
  accept (logged) {
    keepAnchored(logged.time)
    try {
      const writer = this.#usualWriter
      writer.position = logged.list === null ? this.#usual.write(logged.line, logged.bindings, logged.error) : 0
      if (writer.position > 0 && logged.inherited !== null && !this.#writeInherited(writer, logged)) writer.position = 0
      if (writer.position > 0) this.#add(writer, logged, logged.context ?? this.#usual.contextOfLine())
      else if (logged.line.length > this.#exporter.spanBytesMax) this.#exporter.dropTooLarge(logged.line.length)
      else this.#addParsed(logged)
    } catch (error) {
      this.#exporter.dropFailed(error)
    }
  }

  /** Returns false if there are too many attributes or bytes, or the line may have one of the attributes itself: it is then parsed. */
  #writeInherited (writer, { line, inherited }) {
    const { attributes, attributeValueLength } = this.#limits
    const list = []
    const isTooMuch = this.#usual.attributeCount + inherited.length / 2 > attributes || addInherited(list, inherited, Infinity, attributeValueLength) > 0 ||
      writer.position + attributesBound(list) + RECORD_OVERHEAD > writer.bytes.length
    if (isTooMuch || list.some((key, i) => i % 2 === 0 && line.includes(JSON.stringify(key)))) return false
    writeAttributes(writer, TAG_ATTRIBUTE, list)
    return true
  }

  /** Completes a record with the common fields (times, severity, ids) and adds it to the chunk. */
  #add (writer, logged, context) {
    writeHead(writer, logged)
    if (logged.severityText !== '') writer.string(TAG_SEVERITY_TEXT, logged.severityText)
    if (context !== undefined) writeContext(writer, context)
    const { bytes, position } = writer
    writeLength4(writer.view, 1, position - 5)
    const exporter = this.#exporter
    const scope = encodeScope(logged.scope)
    const byteCount = position + scope.length + RUN_BYTES
    if (byteCount > exporter.spanBytesMax) return exporter.dropTooLarge(position)
    const chunk = exporter.reserve(byteCount, true)
    if (chunk === null) return
    if (chunk.scope !== scope) openRun(this.#writer, chunk, scope)
    const end = chunk.length + bytes.copy(chunk.bytes, chunk.length, 0, position)
    writeLength4(chunk.view, chunk.scopeSpansStart, end - chunk.scopeSpansStart - 4)
    exporter.commit(chunk, end)
  }

  /** Adds an event or an unusual line. */
  #addParsed (logged) {
    const { eventName, severityText } = logged
    const { attributes, attributeValueLength } = this.#limits
    const { body, list, dropped: left, context } = contentOf(logged, this.#names, attributes)
    const dropped = left + addInherited(list, logged.inherited, attributes, attributeValueLength)
    for (let i = 1; i < list.length; i += 2) list[i] = limited(list[i], attributeValueLength)
    const message = limited(body, Infinity)
    const writer = new ProtoWriter(RECORD_OVERHEAD + (eventName.length + severityText.length) * 3 + valueBound(message ?? null) + attributesBound(list))
    writer.position = HEAD_BYTES
    if (eventName !== '') writer.string(TAG_EVENT_NAME, eventName)
    if (message !== undefined) {
      writer.byte(TAG_BODY)
      const at = writer.reserve4()
      writeValue(writer, message)
      writer.length4(at)
    }
    writeAttributes(writer, TAG_ATTRIBUTE, list)
    if (dropped > 0) {
      writer.byte(TAG_DROPPED_ATTRIBUTES)
      writer.varint(dropped)
    }
    this.#add(writer, logged, context)
  }
}

function writeHead ({ bytes, view }, { time, observedTime, severityNumber }) {
  bytes[0] = TAG_RECORD
  bytes[5] = 0x09 // time_unix_nano
  writeNanos(view, 6, time)
  bytes[14] = 0x59 // observed_time_unix_nano
  writeNanos(view, 15, observedTime)
  bytes[23] = 0x10
  bytes[24] = severityNumber
}

function writeContext (writer, context) {
  const { bytes, view, position } = writer
  bytes[position] = 0x45
  view.setInt32(position + 1, context.flags, true)
  bytes[position + 5] = 0x4a
  bytes[position + 6] = 16
  view.setInt32(position + 7, context.t0)
  view.setInt32(position + 11, context.t1)
  view.setInt32(position + 15, context.t2)
  view.setInt32(position + 19, context.t3)
  bytes[position + 23] = 0x52
  bytes[position + 24] = 8
  view.setInt32(position + 25, context.s0)
  view.setInt32(position + 29, context.s1)
  writer.position += 33
}

/** Cuts strings, and turns values deeper than DEPTH_MAX into JSON text. */
function limited (value, lengthMax, depth = 0) {
  if (typeof value === 'string') return cut(value, lengthMax)
  if (typeof value !== 'object' || value === null) return value
  if (depth === DEPTH_MAX) return cut(JSON.stringify(value), lengthMax)
  for (const key of Object.keys(value)) value[key] = limited(value[key], lengthMax, depth + 1)
  return value
}

module.exports = { RecordEncoder }
