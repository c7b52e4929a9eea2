'use strict'

// Log records as plain objects for light-trace/testing, and as OTLP JSON or text for standard output.

const clock = require('../../runtime/timers.js')
const { traceOf } = require('../../context/trace-context.js')
const { attempt } = require('../../runtime/report.js')
const { toObject, hasKey, setAttribute } = require('../../span/attributes.js')
const { SCHEMA_URL } = require('../../span/recording-span.js')
const { resourceOf, scopeOf, attributesOf } = require('../../otlp/json.js')
const { typeOnLine } = require('./logged-error.js')

// Members of a line that the record has as fields, or the resource has as attributes.
const RECORD_KEYS = ['time', 'trace_id', 'span_id', 'trace_flags', 'level', 'pid', 'hostname']
const EXCEPTION_KEYS = new Map([['type', 'exception.type'], ['message', 'exception.message'], ['stack', 'exception.stacktrace']])

const INT64_DIGITS = 16 // an integer with this many digits may be inexact as a number

function plainRecord (logged, names) {
  const { eventName, severityNumber, severityText } = logged
  const { body, list, context } = contentOf(logged, names)
  addInherited(list, logged.inherited)
  const { traceId = '', spanId = '', flags = 0 } = context ?? {}
  return {
    time: Number(clock.nanosOf(logged.time)) / 1e6,
    severityNumber,
    severityText,
    eventName,
    body,
    attributes: toObject(list),
    traceId,
    spanId,
    traceFlags: flags
  }
}

/**
 * Parses a line. A line that is not JSON, for example from `hooks.streamWrite` or a custom stringifier, becomes the body.
 * @param {import('./tap').LoggedLine} logged @param {{ messageKey: string, errorKey: string, omit?: import('../omit').Omission | null }} names
 * @param {number} [countMax] how many attributes are read
 * @returns {{ body: unknown, list: Array, dropped: number, context: TraceContext | undefined }} list: its attributes; dropped: how many more it has
 */
function contentOf ({ line, list, context, error: logged }, { messageKey, errorKey, omit = null }, countMax = Infinity) {
  if (list !== null) return { body: undefined, list: list.slice(0, countMax * 2), dropped: Math.max(0, list.length / 2 - countMax), context }
  const members = membersOf(line)
  if (members === null) return { body: line.trimEnd(), list: [], dropped: 0, context }
  const attributes = new Map()
  let dropped = 0
  const add = (key, owner, member) => {
    if (omit !== null && omit.has(key)) return
    if (attributes.size < countMax || attributes.has(key)) attributes.set(key, omit === null ? owner[member] : omit.stripValue(key, owner[member]))
    else dropped++
  }
  // Object.keys, not Object.entries: there may be a hundred thousand members, and only a few are read.
  for (const key of Object.keys(members)) {
    if (key === messageKey || key === '' || RECORD_KEYS.includes(key)) continue
    if (key === errorKey && isMap(members[key])) {
      const error = members[key]
      const type = typeOnLine(error, logged)
      for (const member of Object.keys(error)) {
        if (member === 'type' && type !== error.type) {
          add('exception.type', { type }, 'type')
          add(`${key}.type`, error, 'type')
          continue
        }
        // The semantic conventions for exceptions: https://opentelemetry.io/docs/specs/semconv/exceptions/exceptions-logs/
        const name = typeof error[member] === 'string' ? EXCEPTION_KEYS.get(member) : undefined
        add(name ?? `${key}.${member}`, error, member)
      }
    } else add(key, members, key)
  }
  const of = (key) => Object.hasOwn(members, key) ? members[key] : undefined
  return { body: of(messageKey), list: [...attributes].flat(), dropped, context: context ?? contextOf(of('trace_id'), of('span_id'), of('trace_flags')) }
}

/** Adds the inherited attributes that a record does not have itself; returns the number that did not fit. */
function addInherited (list, inherited, countMax = Infinity, lengthMax = Infinity) {
  if (inherited === null) return 0
  let dropped = 0
  for (let i = 0; i < inherited.length; i += 2) {
    if (!hasKey(list, inherited[i]) && !setAttribute(list, inherited[i], inherited[i + 1], countMax, lengthMax)) dropped++
  }
  return dropped
}

function isMap (value) { return typeof value === 'object' && value !== null && !Array.isArray(value) }

function membersOf (line) {
  const read = attempt(() => JSON.parse(line))
  if (!isMap(read)) return null
  return /\d{16}/.test(line) ? JSON.parse(withLongIntegersAsText(line)) : read
}

/** Keeps all digits of a BigInt. Only for valid JSON: after an unclosed string, the search from each quotation mark runs to the end. */
function withLongIntegersAsText (line) {
  return line.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => /^-?\d+$/.test(token) && token.length >= INT64_DIGITS ? `"${token}"` : token)
}

/** The trace ids on a line, as a context; undefined if they are invalid. */
function contextOf (traceId, spanId, flags) {
  return traceOf({ spanContext: () => ({ traceId, spanId, traceFlags: parseInt(flags, 16) }) })
}

/** An OTLP request with one record, as a line of JSON. */
function recordJson (resource, logged, names) {
  const { severityNumber, severityText, eventName, body, attributes, traceId, spanId, traceFlags } = plainRecord(logged, names)
  const record = {
    timeUnixNano: String(clock.nanosOf(logged.time)),
    observedTimeUnixNano: String(clock.nanosOf(logged.observedTime)),
    severityNumber,
    severityText: severityText || undefined,
    eventName: eventName || undefined,
    body: body === undefined ? undefined : attributesOf(['body', body])[0].value,
    attributes: attributesOf(Object.entries(attributes).flat()),
    ...traceId !== '' && { traceId, spanId, flags: traceFlags }
  }
  return JSON.stringify({ resourceLogs: [{ resource: resourceOf(resource), schemaUrl: SCHEMA_URL, scopeLogs: [{ scope: scopeOf(logged.scope), logRecords: [record] }] }] })
}

/** A record in readable form: 'LOG warn not placed order=7 exception.type="TypeError" trace_id=... span_id=...' */
function recordText (logged, names) {
  const { severityNumber, severityText, eventName, body, attributes, traceId, spanId } = plainRecord(logged, names)
  const words = ['LOG', severityText === '' ? severityNumber : severityText, eventName, typeof body === 'object' ? JSON.stringify(body) : body]
  for (const [key, value] of Object.entries(attributes)) if (key !== 'exception.stacktrace') words.push(`${key}=${JSON.stringify(value)}`)
  if (traceId !== '') words.push(`trace_id=${traceId}`, `span_id=${spanId}`)
  return words.filter((word) => word !== undefined && word !== '').join(' ')
}

module.exports = { EXCEPTION_KEYS, RECORD_KEYS, plainRecord, contentOf, addInherited, contextOf, recordJson, recordText }
