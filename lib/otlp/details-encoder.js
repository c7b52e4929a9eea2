'use strict'

// What few spans have: events, links, a status, and how many of each were dropped.

const { writeNanos } = require('../span/clock')
const { textBound } = require('./proto-writer')
const { attributesBound, writeAttributes } = require('./attribute-encoder')

const TAG_EVENT = 0x5a
const TAG_LINK = 0x6a
const TAG_STATUS = 0x7a

// Span.flags and Link.flags beyond the W3C byte: whether it is known that the other span is remote, and whether it is.
const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200

/** Upper bound of what `writeDetails` writes. */
function detailsBound ({ events, links, statusMessage }) {
  let bound = 64 + textBound(statusMessage)
  for (const { name, list } of events) bound += 40 + textBound(name) + attributesBound(list)
  for (const { context, list } of links) bound += 64 + textBound(tracestateOf(context)) + attributesBound(list)
  return bound
}

function writeDetails (writer, details) {
  for (const event of details.events) writeEvent(writer, event)
  writeCount(writer, 0x60, details.droppedEvents)
  for (const link of details.links) writeLink(writer, link)
  writeCount(writer, 0x70, details.droppedLinks)
  if (details.statusCode === 0) return
  writer.byte(TAG_STATUS)
  const at = writer.reserve4()
  if (details.statusMessage !== '') writer.string(0x12, details.statusMessage)
  writer.byte(0x18)
  writer.byte(details.statusCode)
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
  const tracestate = tracestateOf(context)
  if (tracestate !== '') writer.string(0x1a, tracestate)
  writeAttributes(writer, 0x22, list)
  writeCount(writer, 0x28, droppedAttributesCount)
  writer.byte(0x35)
  writer.fixed32(context.traceFlags | HAS_IS_REMOTE | (context.isRemote === true ? IS_REMOTE : 0))
  writer.length4(at)
}

function writeCount (writer, tag, count) {
  if (count === 0) return
  writer.byte(tag)
  writer.varint(count)
}

function tracestateOf ({ traceState }) {
  return traceState === undefined ? '' : traceState.serialize()
}

module.exports = { detailsBound, writeDetails, writeCount, tracestateOf, HAS_IS_REMOTE, IS_REMOTE }
