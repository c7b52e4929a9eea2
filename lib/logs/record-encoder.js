'use strict'

// Lines of pino, and events, to OTLP bytes, into the exporter's open chunk.
//
// What is read is the line itself, not the objects that were logged: what redaction, serializers and formatters have left out of it
// must not leave by this way either.

const { cut } = require('../span/attributes')
const { keepAnchored, writeNanos } = require('../runtime/timers')
const { ProtoWriter, writeLength4, attributesBound, valueBound, writeAttributes, writeValue } = require('../otlp/proto-writer')
const { openRun, RUN_BYTES } = require('../otlp/span-encoder')
const { encodeScope } = require('../otlp/request')
const { UsualLine, DEPTH_MAX, TAG_RECORD, TAG_SEVERITY_TEXT, TAG_BODY, TAG_ATTRIBUTE } = require('./usual-line')
const { readLine } = require('./plain')

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
      const writer = logged.list === null ? this.#writeLine(logged) : this.#writeEvent(logged)
      this.#add(writer.bytes, writer.position, logged)
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

  #writeEvent (logged) {
    return write(logged, { body: undefined, list: logged.list, dropped: 0, ids: logged.context })
  }

  /** A line that is not as pino writes nearly all of them. */
  #writeLine (logged) {
    const { attributes, attributeValueLength } = this.#limits
    const { body, list, ids } = readLine(logged.line, this.#names)
    const kept = list.slice(0, attributes * 2)
    for (let i = 1; i < kept.length; i += 2) kept[i] = limited(kept[i], attributeValueLength)
    return write(logged, { body: limited(body, Infinity), list: kept, dropped: (list.length - kept.length) / 2, ids: logged.context ?? ids })
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

/** Writes a record into memory of its own. */
function write ({ eventName, severityNumber, severityText, time, observedTime }, { body, list, dropped, ids }) {
  const writer = ProtoWriter.alone(RECORD_OVERHEAD + (eventName.length + severityText.length) * 3 + valueBound(body ?? null) + attributesBound(list))
  writer.byte(TAG_RECORD)
  const lengthAt = writer.reserve4()
  writer.byte(0x09) // time_unix_nano
  writeNanos(writer.view, writer.position, time)
  writer.position += 8
  writer.byte(0x59) // observed_time_unix_nano
  writeNanos(writer.view, writer.position, observedTime)
  writer.position += 8
  writer.byte(0x10)
  writer.byte(severityNumber)
  if (severityText !== '') writer.string(TAG_SEVERITY_TEXT, severityText)
  if (eventName !== '') writer.string(TAG_EVENT_NAME, eventName)
  if (body !== undefined) {
    writer.byte(TAG_BODY)
    const at = writer.reserve4()
    writeValue(writer, body)
    writer.length4(at)
  }
  writeAttributes(writer, TAG_ATTRIBUTE, list)
  if (dropped > 0) {
    writer.byte(TAG_DROPPED_ATTRIBUTES)
    writer.varint(dropped)
  }
  if (ids !== undefined) {
    writer.byte(0x45)
    writer.fixed32(ids.flags)
    writer.byte(0x4a)
    writer.byte(16)
    writer.position += writer.bytes.hexWrite(ids.traceId, writer.position)
    writer.byte(0x52)
    writer.byte(8)
    writer.position += writer.bytes.hexWrite(ids.spanId, writer.position)
  }
  writer.length4(lengthAt)
  return writer
}

module.exports = { RecordEncoder }
