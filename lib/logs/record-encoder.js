'use strict'

// Lines of pino, and events, to OTLP bytes, into the exporter's open chunk.
//
// What is read is the line itself, not the objects that were logged: what redaction, serializers and formatters have left out of it
// must not leave by this way either.

const { cut } = require('../span/attributes')
const { keepAnchored } = require('../runtime/timers')
const { ProtoWriter, writeLength4, attributesBound, valueBound, writeAttributes, writeValue } = require('../otlp/proto-writer')
const { openRun, RUN_BYTES } = require('../otlp/span-encoder')
const { encodeScope } = require('../otlp/request')
const { UsualLine, writeHead, writeIds, DEPTH_MAX, HEAD_BYTES, TAG_SEVERITY_TEXT, TAG_BODY, TAG_ATTRIBUTE } = require('./usual-line')
const { contentOf } = require('./plain')

const TAG_DROPPED_ATTRIBUTES = 0x38
const TAG_EVENT_NAME = 0x62

const RECORD_OVERHEAD = 200 // times, severity, ids

class RecordEncoder {
  #exporter
  #limits
  #names
  #usual
  #writer = new ProtoWriter()

  /**
   * @param {Exporter} exporter
   * @param {{ attributes: number, attributeValueLength: number }} limits
   * @param {{ messageKey: string, errorKey: string }} names of the members that are the message and the error
   */
  constructor (exporter, limits, names) {
    this.#exporter = exporter
    this.#limits = limits
    this.#names = names
    this.#usual = new UsualLine(limits, names)
  }

  /**
   * Writes one record. HOT, once per line where lines are exported. Budget: 0 objects.
   * @param {import('./tap').LoggedLine} logged
   */
  accept (logged) {
    keepAnchored(logged.time)
    try {
      const usual = logged.list === null ? this.#usual.write(logged) : 0
      if (usual > 0) return this.#add(this.#usual.bytes, usual, logged)
      if (logged.line.length > this.#exporter.spanBytesMax) return this.#exporter.dropTooLarge(logged.line.length)
      const { bytes, position } = this.#write(logged)
      this.#add(bytes, position, logged)
    } catch (error) {
      this.#exporter.dropFailed(error)
    }
  }

  #add (bytes, length, { scope }) {
    const exporter = this.#exporter
    const encoded = encodeScope(scope)
    const byteCount = length + encoded.length + RUN_BYTES
    if (byteCount > exporter.spanBytesMax) return exporter.dropTooLarge(length)
    const chunk = exporter.reserve(byteCount, true)
    if (chunk === null) return
    if (chunk.scope !== encoded) openRun(this.#writer, chunk, encoded)
    const end = chunk.length + bytes.copy(chunk.bytes, chunk.length, 0, length)
    writeLength4(chunk.view, chunk.scopeSpansStart, end - chunk.scopeSpansStart - 4)
    exporter.commit(chunk, end)
  }

  /** Writes an event, or a line that is not as pino writes nearly all of them, into memory of its own. */
  #write (logged) {
    const { eventName, severityText } = logged
    const { attributes, attributeValueLength } = this.#limits
    const { body, list, ids } = contentOf(logged, this.#names)
    const kept = list.slice(0, attributes * 2)
    for (let i = 1; i < kept.length; i += 2) kept[i] = limited(kept[i], attributeValueLength)
    const message = limited(body, Infinity)
    const writer = ProtoWriter.alone(RECORD_OVERHEAD + (eventName.length + severityText.length) * 3 + valueBound(message ?? null) + attributesBound(kept))
    writeHead(writer.bytes, writer.view, logged)
    writer.position = HEAD_BYTES
    if (severityText !== '') writer.string(TAG_SEVERITY_TEXT, severityText)
    if (eventName !== '') writer.string(TAG_EVENT_NAME, eventName)
    if (message !== undefined) {
      writer.byte(TAG_BODY)
      const at = writer.reserve4()
      writeValue(writer, message)
      writer.length4(at)
    }
    writeAttributes(writer, TAG_ATTRIBUTE, kept)
    if (kept.length < list.length) {
      writer.byte(TAG_DROPPED_ATTRIBUTES)
      writer.varint((list.length - kept.length) / 2)
    }
    if (ids !== undefined) writer.position = writeIds(writer.bytes, writer.view, writer.position, ids)
    writeLength4(writer.view, 1, writer.position - 5)
    return writer
  }
}

/** Cuts texts, and writes what lies too deep as text. */
function limited (value, lengthMax, depth = 0) {
  if (typeof value === 'string') return cut(value, lengthMax)
  if (typeof value !== 'object' || value === null) return value
  if (depth === DEPTH_MAX) return cut(JSON.stringify(value), lengthMax)
  for (const key of Object.keys(value)) value[key] = limited(value[key], lengthMax, depth + 1)
  return value
}

module.exports = { RecordEncoder }
