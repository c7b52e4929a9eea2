'use strict'

// Reads a log record: only the needed facts when it arrives, and all of it when a user opens it.
//
// LogRecord { time = 1; severity_number = 2; severity_text = 3; AnyValue body = 5; KeyValue attributes = 6; dropped_attributes_count = 7;
//             flags = 8; trace_id = 9; span_id = 10; observed_time = 11; event_name = 12 }

const { ProtoReader, BYTES } = require('./proto-reader')
const { readKeyValue, readAnyValue, checkKeyValue, checkAnyValue } = require('./attributes')
const { idOf, millisecondsOf } = require('./span-facts')
const { nanoOf } = require('./span-detail')
const { LEVELS } = require('./names')

const SEVERITY_MAX = 24

/** Reads the facts that are needed when a record arrives, and checks the rest of it. @throws Malformed */
function recordFacts (bytes, from, to) {
  const reader = new ProtoReader(bytes, from, to)
  const facts = { traceId: '', spanId: '', timeMs: 0, severity: 0 }
  let observedMs = 0
  let severityText = ''
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    switch (field) {
      case 1: facts.timeMs = millisecondsOf(reader.hi, reader.lo); break
      case 2: facts.severity = reader.number(); break
      case 3: reader.expect(BYTES); severityText = bytes.latin1Slice(reader.from, Math.min(reader.to, reader.from + 5)).toLowerCase(); break
      case 5: checkAnyValue(reader.message(), 0); break
      case 6: checkKeyValue(reader.message()); break
      case 9: facts.traceId = idOf(reader, 16); break
      case 10: facts.spanId = idOf(reader, 8); break
      case 11: observedMs = millisecondsOf(reader.hi, reader.lo); break
      case 12: reader.expect(BYTES); break
    }
  }
  if (/^0*$/.test(facts.traceId)) facts.traceId = facts.spanId = ''
  if (facts.timeMs === 0) facts.timeMs = observedMs
  // Some senders set only the severity text, for example WARN or Warning.
  if (facts.severity === 0) facts.severity = LEVELS.findIndex((level) => severityText.startsWith(level)) * 4 + 1
  if (!(facts.severity > 0 && facts.severity <= SEVERITY_MAX)) facts.severity = 0
  return facts
}

/** @returns {{ timeNano: bigint, observedNano: bigint, severity, severityText, body: { type, value }, attributes: object[], dropped, flags, traceId, spanId, eventName }} */
function readRecord (bytes) {
  const reader = new ProtoReader(bytes)
  const record = {
    timeNano: 0n, observedNano: 0n, severity: 0, severityText: '', body: { type: 'empty', value: null }, attributes: [], dropped: 0, flags: 0, traceId: '', spanId: '', eventName: ''
  }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    switch (field) {
      case 1: record.timeNano = nanoOf(reader); break
      case 2: record.severity = reader.number(); break
      case 3: record.severityText = reader.text(); break
      case 5: record.body = readAnyValue(reader.message(), 0); break
      case 6: record.attributes.push(readKeyValue(reader.message())); break
      case 7: record.dropped = reader.number(); break
      case 8: record.flags = reader.number(); break
      case 9: record.traceId = reader.hex(); break
      case 10: record.spanId = reader.hex(); break
      case 11: record.observedNano = nanoOf(reader); break
      case 12: record.eventName = reader.text(); break
    }
  }
  return record
}

/** The name of the level, for example `info`, or '' if the sender set none. */
function levelName (severity) {
  return LEVELS[Math.ceil(severity / 4) - 1] ?? ''
}

module.exports = { recordFacts, readRecord, levelName }
