'use strict'

// Reads a whole span from its OTLP bytes. The bytes were checked when they arrived.

const { ProtoReader } = require('./proto-reader')
const { readKeyValue, readAttributes } = require('./attributes')
const { KINDS, STATUSES } = require('./names')

/**
 * @returns {{ traceId, id, parent, traceState, flags, name, kind, status: { code, message }, startNano: bigint, endNano: bigint, attributes: object[],
 *   events: { name, timeNano: bigint, attributes, dropped }[], links: { trace, span, traceState, attributes, dropped, flags }[], dropped: { attributes, events, links } }}
 */
function readSpan (bytes, from, to) {
  const reader = new ProtoReader(bytes, from, to)
  const span = {
    traceId: '',
    id: '',
    parent: '',
    traceState: '',
    flags: 0,
    name: '',
    kind: 0,
    status: { code: 0, message: '' },
    startNano: 0n,
    endNano: 0n,
    attributes: [],
    events: [],
    links: [],
    dropped: { attributes: 0, events: 0, links: 0 }
  }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    switch (field) {
      case 1: span.traceId = reader.hex(); break
      case 2: span.id = reader.hex(); break
      case 3: span.traceState = reader.text(); break
      case 4: span.parent = reader.hex(); break
      case 5: span.name = reader.text(); break
      case 6: span.kind = reader.number(); break
      case 7: span.startNano = nanoOf(reader); break
      case 8: span.endNano = nanoOf(reader); break
      case 9: span.attributes.push(readKeyValue(reader.message())); break
      case 10: span.dropped.attributes = reader.number(); break
      case 11: span.events.push(readEvent(reader.message())); break
      case 12: span.dropped.events = reader.number(); break
      case 13: span.links.push(readLink(reader.message())); break
      case 14: span.dropped.links = reader.number(); break
      case 15: span.status = readStatus(reader.message()); break
      case 16: span.flags = reader.number(); break
    }
  }
  return span
}

/** Reads only the span's events, which the waterfall shows as marks. */
function readEvents (bytes, from, to) {
  const reader = new ProtoReader(bytes, from, to)
  const events = []
  for (let field = reader.next(); field !== 0; field = reader.next()) if (field === 11) events.push(readEvent(reader.message()))
  return events
}

/** Reads only the span's status message. */
function readMessage (bytes, from, to) {
  const reader = new ProtoReader(bytes, from, to)
  let message = ''
  for (let field = reader.next(); field !== 0; field = reader.next()) if (field === 15) message = readStatus(reader.message()).message
  return message
}

function readEvent (reader) {
  const event = { name: '', timeNano: 0n, attributes: [], dropped: 0 }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) event.timeNano = nanoOf(reader)
    else if (field === 2) event.name = reader.text()
    else if (field === 3) event.attributes.push(readKeyValue(reader.message()))
    else if (field === 4) event.dropped = reader.number()
  }
  return event
}

function readLink (reader) {
  const link = { trace: '', span: '', traceState: '', attributes: [], dropped: 0, flags: 0 }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) link.trace = reader.hex()
    else if (field === 2) link.span = reader.hex()
    else if (field === 3) link.traceState = reader.text()
    else if (field === 4) link.attributes.push(readKeyValue(reader.message()))
    else if (field === 5) link.dropped = reader.number()
    else if (field === 6) link.flags = reader.number()
  }
  return link
}

function readStatus (reader) {
  const status = { code: 0, message: '' }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) status.message = reader.text()
    else if (field === 3) status.code = reader.number()
  }
  return status
}

/** InstrumentationScope { name = 1; version = 2; attributes = 3 } */
function readScope (bytes) {
  const reader = new ProtoReader(bytes)
  const scope = { name: '', version: '', attributes: readAttributes(bytes, 3) }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) scope.name = reader.text()
    else if (field === 2) scope.version = reader.text()
  }
  return scope
}

/** Resource { attributes = 1 } */
function readResource (bytes) {
  return readAttributes(bytes, 1)
}

function nanoOf (reader) {
  return (BigInt(reader.hi) << 32n) | BigInt(reader.lo)
}

function kindName (kind) {
  return KINDS[kind] ?? KINDS[0]
}

function statusName (code) {
  return STATUSES[code] ?? STATUSES[0]
}

module.exports = { readSpan, readEvents, readMessage, readScope, readResource, nanoOf, kindName, statusName }
