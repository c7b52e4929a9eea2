'use strict'

// Reads what light-trace recorded about calls in sequence under a span, and about work after the response: see docs/outbound.md. Any sender
// may have sent the span, so the values are not trusted.

const { DIALECTS, sanitise } = require('../../lib/features/libraries/statement')
const { readSomeAttributes } = require('../otlp/attributes')
const { KIND_CLIENT, KIND_PRODUCER } = require('../otlp/names')
const { callName } = require('./call-name')
const { safeText, plural } = require('./safe-text')

const [SHAPE, COUNT, DURATION] = ['shape', 'count', 'duration'].map((name) => `light_trace.repeated.${name}`)
const WANTED = new Set([SHAPE, COUNT, DURATION])
const SHAPE_MAX = 200
const STATEMENTS_MAX = 3
const STATEMENT_MAX = 2000

const QUERY_KEYS = new Set(['db.query.text', 'db.statement'])
// By db.system.name. Statements of other systems are commands, whose text differs from call to call.
const SQL = { postgresql: 'postgresql', cockroachdb: 'postgresql', mysql: 'mysql', mariadb: 'mysql', sqlite: 'sqlite', 'microsoft.sql_server': 'mssql', mssql: 'mssql', 'oracle.db': 'postgresql', other_sql: 'mysql' }

/** @returns {{ shape: string, count: number, savedMs: number } | undefined} savedMs: the most that a single call in their place could save */
function repeatsOf (span) {
  if (span.kind === KIND_CLIENT || span.kind === KIND_PRODUCER) return undefined // these spans make no calls, and most spans are of these kinds
  const found = readSomeAttributes(span, WANTED)
  const [shape, count, seconds] = [found.get(SHAPE), found.get(COUNT), found.get(DURATION)]
  if (typeof shape !== 'string' || !(count > 1)) return undefined
  return { shape: safeText(shape, SHAPE_MAX), count, savedMs: seconds >= 0 && seconds < 1e9 ? seconds * 1000 * (1 - 1 / count) : 0 }
}

/** '12 calls in sequence: redis GET; batching them could save up to 8.1 ms' */
function repeatText ({ shape, count, savedMs }, duration) {
  return `${plural(count, 'call')} in sequence: ${shape}${savedMs > 0 ? `; batching them could save up to ${duration(savedMs)}` : ''}`
}

/** The most repeated calls of a trace, with the span that made them, or null. Reads each span once. */
function repeatsIn (trace) {
  const { spans } = trace
  for (; trace.repeatsRead < spans.length; trace.repeatsRead++) {
    const span = spans[trace.repeatsRead]
    if (!span.bytes.subarray(span.from, span.to).includes(COUNT)) continue // true for most spans, which are then not parsed
    const repeats = repeatsOf(span)
    if (repeats !== undefined && !(trace.repeats?.count >= repeats.count)) trace.repeats = { span: span.id, ...repeats }
  }
  return trace.repeats
}

/**
 * The statements of the repeated calls of a span, the most frequent first. The calls of a shape may have several, because light-trace
 * compares their summaries. Rarer statements that it did not count are left out. @returns {{ system: string, statements: { text: string, count: number }[], more: number }}
 */
function statementsOf ({ spans }, parent, { shape, count }) {
  const counts = new Map()
  let system = ''
  for (const span of spans) {
    if (span.parent !== parent.id || !isOfShape(span, shape)) continue
    system ||= callName(span).system ?? ''
    const text = statementOf(span, system)
    if (text !== '') counts.set(text, (counts.get(text) ?? 0) + (marksOf(span).calls ?? 1))
  }
  let counted = 0
  const sorted = [...counts].sort(([, a], [, b]) => b - a).filter(([, calls]) => (counted += calls) - calls < count)
  return {
    system: safeText(system, SHAPE_MAX),
    statements: sorted.slice(0, STATEMENTS_MAX).map(([text, count]) => ({ text: text.slice(0, STATEMENT_MAX), count })),
    more: Math.max(0, sorted.length - STATEMENTS_MAX)
  }
}

function isOfShape (span, shape) {
  if (span.kind !== KIND_CLIENT && span.kind !== KIND_PRODUCER) return false
  const { name, system } = callName(span)
  return [name, span.name].includes(shape) || name === `${system} ${shape}`
}

/** A call's statement with `?` for its values, so that calls with different values have the same statement. */
function statementOf (span, system) {
  const text = [...readSomeAttributes(span, QUERY_KEYS).values()].find((value) => typeof value === 'string') ?? ''
  return Object.hasOwn(SQL, system) ? sanitise(text, DIALECTS[SQL[system]]).text : text
}

/**
 * Numbers the statements of calls that have the same name, so that the page does not fold different statements. Calls that light-trace
 * counted together stay together, and so does every call that is not SQL.
 * @param {object[]} calls children of a span, as nodes of a layout @returns {Map<object, number>} not for calls of the first statement
 */
function statementNumbers (calls, repeats) {
  const alike = new Map()
  for (const call of calls) {
    if (call.span.kind !== KIND_CLIENT) continue
    const { group, system } = callName(call.span)
    if (!Object.hasOwn(SQL, system ?? '')) continue
    if (!alike.has(group)) alike.set(group, { system, calls: [] })
    alike.get(group).calls.push(call)
  }
  const numbers = new Map()
  for (const [name, { system, calls }] of alike) {
    if (calls.length < 2 || (name === `${system} ${repeats?.shape}` && repeats.count >= calls.length)) continue
    const statements = new Map()
    for (const call of calls) {
      const text = statementOf(call.span, system)
      if (!statements.has(text)) statements.set(text, statements.size)
      if (statements.get(text) > 0) numbers.set(call, statements.get(text))
    }
  }
  return numbers
}

// The attributes that light-trace sets on a span that ended after the response, never ended, or represents many calls.
const MARKS = { 'light_trace.after_response': 'afterResponse', 'light_trace.never_ended': 'neverEnded', 'light_trace.fold.count': 'calls' }
const MARK_KEYS = new Set(Object.keys(MARKS))

/** @returns {{ afterResponse?: true, neverEnded?: true, calls?: number }} */
function marksOf (span) {
  if (!span.bytes.subarray(span.from, span.to).includes('light_trace.')) return {} // true for most spans, which are then not parsed
  const found = [...readSomeAttributes(span, MARK_KEYS)].filter(([key, value]) => key === 'light_trace.fold.count' ? value > 1 : value === true)
  return Object.fromEntries(found.map(([key, value]) => [MARKS[key], value]))
}

module.exports = { repeatsOf, repeatsIn, repeatText, statementsOf, statementNumbers, marksOf }
