'use strict'

// Lines as plain objects, for light-trace/testing, and as OTLP JSON for standard output.

const clock = require('../runtime/timers')
const { toObject } = require('../span/attributes')
const { SCHEMA_URL } = require('../span/recording-span')
const { resourceOf, scopeOf, attributesOf, nanos } = require('../otlp/json')

const KNOWN = new Set(['level', 'time', 'pid', 'hostname', 'trace_id', 'span_id', 'trace_flags'])

/** @param {import('./tap').LoggedLine} logged @param {{ messageKey: string, errorKey: string }} names */
function plainRecord (logged, { messageKey, errorKey }) {
  const { line, list, eventName, severityNumber, severityText, context } = logged
  const [seconds, nanoseconds] = clock.toHrTime(logged.time)
  const members = list === null ? membersOf(line) : []
  const attributes = list === null ? {} : toObject(list)
  let body
  for (const [key, value] of members ?? [[messageKey, line.trimEnd()]]) {
    if (key === messageKey) body = value
    else if (key === errorKey && typeof value === 'object' && value !== null) Object.assign(attributes, exceptionOf(key, value))
    else if (!KNOWN.has(key)) attributes[key] = value
  }
  const ids = context ?? Object.fromEntries((members ?? []).filter(([key]) => KNOWN.has(key)).map(([key, value]) => [IDS[key], value]))
  return {
    time: seconds * 1000 + nanoseconds / 1e6,
    severityNumber,
    severityText,
    eventName,
    body,
    attributes,
    traceId: ids.traceId ?? '',
    spanId: ids.spanId ?? '',
    traceFlags: Number(ids.flags ?? 0)
  }
}

const IDS = { trace_id: 'traceId', span_id: 'spanId', trace_flags: 'flags' }

function membersOf (line) {
  try {
    return Object.entries(JSON.parse(line))
  } catch {
    return null
  }
}

function exceptionOf (key, error) {
  const names = { type: 'exception.type', message: 'exception.message', stack: 'exception.stacktrace' }
  return Object.fromEntries(Object.entries(error).map(([member, value]) => [typeof value === 'string' && names[member] ? names[member] : `${key}.${member}`, value]))
}

/** An OTLP request of one record as a line of JSON. */
function recordJson (resource, logged, names) {
  const { severityNumber, severityText, eventName, body, attributes, traceId, spanId, traceFlags } = plainRecord(logged, names)
  const [{ value } = { value: undefined }] = body === undefined ? [] : attributesOf(['body', body])
  const record = {
    timeUnixNano: nanos(logged.time),
    observedTimeUnixNano: nanos(logged.observedTime),
    severityNumber,
    severityText: severityText === '' ? undefined : severityText,
    eventName: eventName === '' ? undefined : eventName,
    body: value,
    attributes: attributesOf(Object.entries(attributes).flat()),
    ...traceId !== '' && { traceId, spanId, flags: traceFlags }
  }
  return JSON.stringify({ resourceLogs: [{ resource: resourceOf(resource), schemaUrl: SCHEMA_URL, scopeLogs: [{ scope: scopeOf(logged.scope), logRecords: [record] }] }] })
}

module.exports = { plainRecord, recordJson }
