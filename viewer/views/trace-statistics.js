'use strict'

// GET /api/traces/<id>/statistics: where the time of one trace went, by the name of its spans or by service.
//
//   GET /users/:id  500  12.5 ms  shop  4bf92f3577b34da6a3ce929d0e0e4736
//
//   calls   own time      total   average       min       max  failed
//       3     6.5 ms     6.5 ms    2.2 ms    1.0 ms    3.5 ms       1  CLIENT redis GET  shop

const { readSomeAttributes } = require('../otlp/attributes')
const { kindName } = require('../otlp/span-detail')
const { KIND_CLIENT, STATUS_ERROR } = require('../otlp/names')
const { summaryOf, rounded } = require('../store/summary')
const { callName } = require('./call-name')
const { layOut } = require('./layout')
const { plural, safeText } = require('./safe-text')
const { duration, headOf } = require('./text')
const { selfTime } = require('./times')

const ROWS_MAX = 500
const TEXT_MAX = 200

const BY = ['name', 'service']

class Group {
  calls = 0
  totalMs = 0
  ownMs = 0
  sumMs = 0
  minMs = Infinity
  maxMs = 0
  errors = 0
  open = 0 // how many ancestors of the current span are in this group

  constructor (name, service, kind) {
    this.name = name
    this.service = service
    this.kind = kind
  }

  add (node, { calls, sumMs, minMs, maxMs, ownMs }) {
    this.calls += calls
    this.sumMs += sumMs
    this.ownMs += ownMs
    if (this.open === 0) this.totalMs += sumMs
    if (minMs < this.minMs) this.minMs = minMs
    if (maxMs > this.maxMs) this.maxMs = maxMs
    if (node.span.status === STATUS_ERROR) this.errors++
  }

  get row () {
    const { name, service, kind, calls, totalMs, ownMs, sumMs, minMs, maxMs, errors } = this
    return {
      name: name.slice(0, TEXT_MAX),
      service: service.slice(0, TEXT_MAX),
      kind,
      calls,
      totalMs: rounded(totalMs),
      ownMs: rounded(ownMs),
      minMs: rounded(minMs),
      avgMs: rounded(sumMs / calls),
      maxMs: rounded(maxMs),
      errors
    }
  }
}

/**
 * Rows with the most own time come first.
 * @param {import('../store/trace').Trace} trace
 * @param {string} [by] one of BY
 */
function statisticsOf (trace, by = 'name') {
  const groups = new Groups(by)
  const above = [] // the groups of the ancestors of the current span
  for (const node of layOut(trace).nodes) {
    while (above.length > node.depth) {
      const left = above.pop()
      if (left !== undefined) left.open--
    }
    const group = node.span === null ? undefined : groups.of(node.span)
    group?.add(node, figuresOf(node))
    if (group !== undefined) group.open++
    above.push(group)
  }
  const all = groups.all.sort((a, b) => b.ownMs - a.ownMs || b.totalMs - a.totalMs)
  const rows = all.slice(0, ROWS_MAX).map(({ row }) => row)
  return { trace: summaryOf(trace), by, ownMs: rounded(all.reduce((sum, { ownMs }) => sum + ownMs, 0)), rows, more: all.length - rows.length }
}

const NUMBERS = [['calls', 'calls'], ['own time', 'ownMs'], ['total', 'totalMs'], ['average', 'avgMs'], ['min', 'minMs'], ['max', 'maxMs'], ['failed', 'errors']]

/** The answer of GET /api/traces/<id>/statistics as text. `paint`: as in text.js */
function statisticsText ({ trace, by, rows, more }, paint) {
  const cells = [
    NUMBERS.map(([label]) => by === 'service' && label === 'calls' ? 'spans' : label),
    ...rows.map((row) => NUMBERS.map(([, key]) => key.endsWith('Ms') ? duration(row[key]) : String(row[key])))
  ]
  const widths = NUMBERS.map((_, column) => Math.max(...cells.map((each) => each[column].length)))
  const lines = cells.map((each) => each.map((text, column) => text.padStart(widths[column])).join('  '))
  const names = rows.map(({ kind, name, service }) => [[kind, safeText(name) || 'no name'].filter(Boolean).join(' '), ...by === 'name' ? [safeText(service)] : []].join('  '))
  return [
    headOf(trace, paint),
    '',
    lines[0],
    ...rows.map((row, i) => `${lines[i + 1]}  ${row.errors > 0 && paint !== undefined ? paint('error', names[i]) : names[i]}`.trimEnd()),
    ...more > 0 ? [`… ${plural(more, 'more row')} with less own time`] : []
  ].join('\n') + '\n'
}

class Groups {
  all = []
  #byName
  #services = new Map()

  constructor (by) {
    this.#byName = by === 'name'
  }

  of (span) {
    const { service } = span.origin
    if (!this.#byName) return this.#group(this.#services, service, service, service, null)
    let names = this.#services.get(service)
    if (names === undefined) this.#services.set(service, names = new Map())
    const { group: name } = callName(span)
    const kind = kindName(span.kind)
    return this.#group(names, `${kind} ${name}`, name, service, kind)
  }

  #group (groups, key, name, service, kind) {
    let group = groups.get(key)
    if (group === undefined) {
      groups.set(key, group = new Group(name, service, kind))
      this.all.push(group)
    }
    return group
  }
}

function figuresOf (node) {
  const { durationMs } = node.span
  const folded = foldedOf(node.span)
  if (folded !== undefined) return { ...folded, ownMs: node.children.length === 0 ? folded.sumMs : ownTime(node) }
  return { calls: 1, sumMs: durationMs, minMs: durationMs, maxMs: durationMs, ownMs: ownTime(node) }
}

// Of doubles, a difference may be a little below zero.
function ownTime (node) {
  return Math.max(0, selfTime(node))
}

const FOLD_KEYS = ['count', 'duration.sum', 'duration.min', 'duration.max'].map((name) => `light_trace.fold.${name}`)
const FOLD_WANTED = new Set(FOLD_KEYS)
const CALLS_MAX = 1e9
const SECONDS_MAX = 1e9

/** The figures of a span that represents many calls (docs/outbound.md). Any sender may have sent it, so they are not trusted. */
function foldedOf (span) {
  if (span.kind < KIND_CLIENT || !span.bytes.subarray(span.from, span.to).includes('light_trace.fold.')) return undefined
  const found = readSomeAttributes(span, FOLD_WANTED)
  const [calls, sum, min, max] = FOLD_KEYS.map((key) => found.get(key))
  if (!Number.isInteger(calls) || calls < 2 || calls > CALLS_MAX) return undefined
  if (![sum, min, max].every(Number.isFinite) || min < 0 || max < min || sum < max || sum > SECONDS_MAX) return undefined
  return { calls, sumMs: sum * 1000, minMs: min * 1000, maxMs: max * 1000 }
}

module.exports = { statisticsOf, statisticsText, BY }
