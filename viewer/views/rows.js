'use strict'

// GET /api/traces/<id>/rows: the rows that the waterfall draws.

const { readEvents, readMessage, kindName, statusName } = require('../otlp/span-detail')
const { STATUS_ERROR } = require('../otlp/names')
const { EXCEPTION } = require('../otlp/span-facts')
const { summaryOf, rounded } = require('../store/summary')
const { callName } = require('./call-name')
const { layOut } = require('./layout')
const { lineText, withLines } = require('./log-lines')
const { selfTime, criticalPath } = require('./times')
const { marksOf, repeatsOf, statementNumbers } = require('./repeats')
const { waitsOf } = require('./waits')

const EVENTS_MAX = 20
const TEXT_MAX = 200
const CALLS_MIN = 5 // the page folds no fewer calls

/** @param {number} limit the most rows to return; `more` counts the rest */
function rowsOf (trace, limit = Infinity) {
  const { nodes } = layOut(trace)
  const critical = nodes.length === 0 ? new Map() : criticalPath(nodes[0])
  const services = new Map()
  // Not always the start of the first row: a broken clock may put another span before it.
  const startMs = nodes.length === 0 ? trace.receivedMs : earliest(nodes)
  let endMs = startMs
  for (const { end } of nodes) endMs = Math.max(endMs, end)
  const all = withLines(trace, nodes)
  const shown = all.slice(0, limit)
  const statements = statementsIn(shown)
  const rows = shown.map((node) => node.line === undefined ? rowOf(node, startMs, critical.get(node), services, statements) : lineRow(node, startMs))
  const more = all.length - rows.length
  return { trace: summaryOf(trace), services: [...services.keys()], startMs, durationMs: rounded(endMs - startMs), rows, ...(more > 0 && { more }) }
}

function earliest (nodes) {
  let first = Infinity
  for (const { start } of nodes) first = Math.min(first, start)
  return first
}

/** The numbers of the statements of all calls that the page could fold. */
function statementsIn (shown) {
  const isShown = new Set(shown)
  return new Map(shown.flatMap(({ children, span }) => {
    if (!(children?.length >= CALLS_MIN)) return []
    return [...statementNumbers(children.filter((child) => isShown.has(child)), span === null ? undefined : repeatsOf(span))]
  }))
}

function rowOf (node, traceStart, critical, services, statements) {
  const { span } = node
  const { name, group, system } = span === null ? { name: '', group: '' } : callName(span)
  const row = {
    id: node.id,
    parent: span === null ? null : span.parent,
    depth: node.depth,
    below: node.below,
    name: cut(name),
    kind: span === null ? null : kindName(span.kind),
    service: span === null ? -1 : numberOf(services, span.origin.service),
    start: rounded(node.start - traceStart),
    duration: rounded(span === null ? node.duration : span.durationMs),
    self: rounded(span === null ? 0 : selfTime(node)),
    status: span === null ? 'UNSET' : statusName(span.status)
  }
  if (critical !== undefined && span !== null) row.critical = critical.map((stretch) => stretch.map((ms) => rounded(ms - traceStart)))
  if (group !== name) row.group = cut(group)
  if (system !== undefined) row.system = cut(system)
  if (statements.has(node)) row.statement = statements.get(node)
  if (span === null) row.missing = true
  else addRare(row, node)
  return row
}

function lineRow ({ line, id, depth, start }, traceStart) {
  const { level, text, rest } = lineText(line)
  return { id, line: level, parent: line.spanId, depth, below: 0, name: cut(text), rest: cut(rest), kind: null, service: -1, start: rounded(start - traceStart), duration: 0, self: 0, status: 'UNSET' }
}

function addRare (row, { span, shift, cycle }) {
  if (span.status === STATUS_ERROR) {
    const message = readMessage(span.bytes, span.from, span.to)
    if (message !== '') row.message = cut(message)
  }
  if (span.code !== 0) row.code = span.code
  if (span.events > 0) addEvents(row, span)
  if (span.links > 0) row.links = span.links
  const waits = waitsOf(span)
  if (waits !== undefined) row.waits = waits.map(rounded)
  if (span.late) row.late = true
  Object.assign(row, marksOf(span))
  const repeats = repeatsOf(span)
  if (repeats !== undefined) row.repeats = repeats
  if (shift !== 0) row.shift = rounded(shift)
  if (cycle) row.cycle = true
}

function addEvents (row, span) {
  const events = readEvents(span.bytes, span.from, span.to)
  row.events = events.slice(0, EVENTS_MAX).map(({ name, timeNano, attributes }) => {
    const event = { at: rounded(Number(timeNano) / 1e6 - span.startMs), name: cut(name) }
    if (name !== EXCEPTION) return event
    for (const { key, value } of attributes) {
      if (key === 'exception.type') event.type = cut(String(value))
      else if (key === 'exception.message') event.message = cut(String(value))
    }
    return event
  })
  if (events.length > EVENTS_MAX) row.moreEvents = events.length - EVENTS_MAX
}

function cut (text) {
  return text.length > TEXT_MAX ? text.slice(0, TEXT_MAX) : text
}

function numberOf (names, name) {
  if (!names.has(name)) names.set(name, names.size)
  return names.get(name)
}

module.exports = { rowsOf }
