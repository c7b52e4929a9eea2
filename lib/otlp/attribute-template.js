'use strict'

// Encodes the attributes of a span by copying the bytes of an earlier span with the same keys. An application sets its attributes with
// every request, and most values are the same as before. Only values that differ are written. If one has a different number of bytes,
// the attributes after it are copied again, to their new position:
//
//   bytes   4A len key 12 len value | 4A len key 12 len value | 4A len key 12 len value
//                             ^ starts[0]  ends[0]
//
// The resulting bytes are always the same as those that proto-writer.js would write.

const { ownText } = require('../span/attributes.js')
const { ProtoWriter, writeLength4, writeString, attributesBound, valueBound, writeAttributes, writeValue, text } = require('./proto-writer.js')
const { TAG_ATTRIBUTE } = require('./templates.js')

const TAG_VALUE = 0x12
const TAG_TEXT = 0x0a

// Limits of the memory for one template, and for all together. Attributes that do not fit are written one by one.
const TEMPLATE_BYTES_MAX = 16384
const ALL_BYTES_MAX = 512 * 1024
// Longer texts are seldom equal, so they are not kept for comparison.
const KEPT_LENGTH_MAX = 64
// After this many spans with a differing value, the template is made again from the latest span. The number doubles each time.
const MISSES_FIRST = 64
const MISSES_MOST = 65536

let allBytes = 0

class AttributeTemplate {
  constructor (list, bytes, starts, ends, missesMax) {
    this.bytes = bytes
    this.starts = starts
    this.ends = ends
    this.values = starts.map((start, i) => comparable(list[i * 2 + 1]))
    this.rests = starts.map(() => null)
    this.changes = new Uint16Array(starts.length) // indexes of the values that `compare` found to differ, for `write`
    this.changeCount = 0
    this.misses = 0
    this.missesMax = missesMax
  }

  /** Finds the values of `list` that differ. Returns an upper bound of the list's bytes. HOT, once per span with attributes. */
  compare (list) {
    const { values, changes } = this
    let bound = this.bytes.length
    let count = 0
    for (let i = 0; i < values.length; i++) {
      const value = list[i * 2 + 1]
      if (value === values[i]) continue
      bound += valueBound(value)
      changes[count++] = i
    }
    this.changeCount = count
    return bound
  }

  /** Writes `list`, which must have been passed to `compare` before. HOT, once per span with attributes. Budget: 0 objects, 0 strings. */
  write (writer, list) {
    const { bytes, position } = writer
    bytes.set(this.bytes, position)
    const shift = this.changeCount === 0 ? position : this.writeChanges(writer, list, position)
    writer.position = this.bytes.length + shift
  }

  /** Writes the values that differ and moves the attributes after them. `from` is the shift of the first byte; returns that of the last. */
  writeChanges (writer, list, from) {
    const { bytes, view } = writer
    const { changes, changeCount, starts, ends } = this
    let shift = from
    for (let n = 0; n < changeCount; n++) {
      const i = changes[n]
      const start = starts[i] + shift
      const end = writeAt(writer, start, list[i * 2 + 1])
      const grown = end - ends[i] - shift
      if (grown === 0) continue
      const attributeStart = (i === 0 ? 0 : ends[i - 1]) + shift
      writeLength4(view, start - 4, end - start)
      writeLength4(view, attributeStart + 1, end - attributeStart - 5)
      shift += grown
      if (i + 1 < ends.length) bytes.set(this.restBehind(i), end)
    }
    this.misses++
    return shift
  }

  restBehind (i) { return (this.rests[i] ??= this.bytes.subarray(this.ends[i])) }
}

/** Writes the content of an AnyValue. Returns its end. */
function writeAt (writer, start, value) {
  if (typeof value === 'string') return writeString(writer.bytes, writer.view, start, TAG_TEXT, value)
  writer.position = start
  writeValue(writer, value)
  return writer.position
}

/** Upper bound of the bytes that `writeShared` writes. A shape that is as long as the list has the same keys. */
function sharedBound (list, shape) {
  const template = shape.length === list.length ? templateOf(list, shape) : null
  return template === null ? attributesBound(list) : template.compare(list)
}

/** Writes the attributes of a span. Must be called after `sharedBound`, with the same arguments. */
function writeShared (writer, list, shape) {
  const template = shape.length === list.length ? shape.template : null
  if (template === null) writeAttributes(writer, TAG_ATTRIBUTE, list)
  else template.write(writer, list)
}

/** @returns {AttributeTemplate | null} null: it would exceed the limits */
function templateOf (list, shape) {
  const { template } = shape
  return template === null || template.misses > template.missesMax ? makeTemplate(list, shape, template) : template
}

function makeTemplate (list, shape, before) {
  if (before !== null) before.misses = 0
  const bytesBefore = before === null ? 0 : before.bytes.length
  const bytesMax = Math.min(TEMPLATE_BYTES_MAX, ALL_BYTES_MAX - allBytes + bytesBefore)
  if (attributesBound(list) > bytesMax) return before
  const writer = new ProtoWriter(bytesMax)
  const starts = []
  const ends = []
  for (let i = 0; i < list.length; i += 2) {
    writer.byte(TAG_ATTRIBUTE)
    const at = writer.reserve4()
    writer.copy(text(TAG_TEXT, list[i]))
    writer.byte(TAG_VALUE)
    const valueAt = writer.reserve4()
    starts.push(writer.position)
    writeValue(writer, list[i + 1])
    writer.length4(valueAt)
    writer.length4(at)
    ends.push(writer.position)
  }
  allBytes += writer.position - bytesBefore
  const missesMax = before === null ? MISSES_FIRST : Math.min(before.missesMax * 2, MISSES_MOST)
  shape.template = new AttributeTemplate(list, new Uint8Array(writer.written), starts, ends, missesMax)
  return shape.template
}

/** Returns the value that `compare` will compare with. It is NaN, which equals nothing, for a value that is not kept. */
function comparable (value) {
  if (typeof value === 'string') return value.length > KEPT_LENGTH_MAX ? NaN : ownText(value)
  return typeof value === 'object' && value !== null ? NaN : value
}

module.exports = { sharedBound, writeShared }
