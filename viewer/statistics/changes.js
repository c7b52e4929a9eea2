'use strict'

// Compares what routes do in the spans of two runs. Order, ids, times, ports and the number of requests do not matter: for each figure, the
// lowest and the highest value among a route's requests are compared.

const { callOf, callsIn } = require('../../lib/features/testing/budget')

const OF_TIME = 'light_trace.time.' // the waits of a slow request, whose presence depends on timing
const PATH_MAX = 4 // names in the path of a span

class Range {
  constructor (number) {
    this.least = number
    this.most = number
  }

  add (number) {
    this.least = Math.min(this.least, number)
    this.most = Math.max(this.most, number)
  }

  toString () { return this.least === this.most ? String(this.least) : `${this.least} to ${this.most}` }
}

/** A place in the span trees of a route's requests: the spans with the same name below the same place. */
class Place {
  constructor (label, above) {
    this.label = label
    this.above = above
    this.below = new Map()
    this.counted = null // Range of the number of spans, over the requests that have this place
    this.seen = 0
  }

  under (label) {
    if (!this.below.has(label)) this.below.set(label, new Place(label, this))
    return this.below.get(label)
  }

  get path () {
    const names = []
    let at = this
    for (; at.above !== null && names.length < PATH_MAX; at = at.above) names.unshift(at.label)
    return `${at.above === null ? '' : '… > '}${names.join(' > ')}`
  }
}

class Route {
  constructor () {
    this.requests = 0
    this.spans = null
    this.calls = new Map() // kind → Range
    this.top = new Place('', null)
    this.errors = new Set()
    this.attributes = new Map() // label → keys
  }

  add ({ root, spans, calls }) {
    const all = [root, ...spans]
    const byId = new Map(spans.map((span) => [span.spanId, span]))
    const places = new Map([[root, this.top]])
    const counts = new Map()
    for (const span of all) {
      const place = this.#placeOf(span, byId, places)
      counts.set(place, (counts.get(place) ?? 0) + callsIn(span))
      this.#describe(span)
    }
    for (const [place, number] of counts) {
      place.counted = ranged(place.counted, number)
      place.seen++
    }
    this.spans = ranged(this.spans, all.reduce((sum, span) => sum + callsIn(span), 0))
    this.#countCalls(calls)
    this.requests++
  }

  // No recursion, because a chain may be deeper than the call stack.
  #placeOf (span, byId, places) {
    const way = new Set()
    let at = span
    while (at !== undefined && !places.has(at) && !way.has(at)) {
      way.add(at)
      at = byId.get(at.parentSpanId)
    }
    let place = places.get(at) ?? this.top // the root is not in byId
    for (const each of [...way].reverse()) places.set(each, place = place.under(labelOf(each)))
    return place
  }

  #describe (span) {
    const { kind, status, attributes } = span
    const label = labelOf(span)
    const own = kind === 'SERVER' ? kind : label // its name is the name of the route
    if (status.code === 'ERROR') this.errors.add(`${own} ${attributes['error.type'] ?? 'ERROR'}`)
    if (!this.attributes.has(own)) this.attributes.set(own, new Set())
    for (const key of Object.keys(attributes)) if (!key.startsWith(OF_TIME)) this.attributes.get(own).add(key)
  }

  #countCalls (calls) {
    const counts = new Map()
    for (const { kind, span } of calls) counts.set(kind, (counts.get(kind) ?? 0) + callsIn(span))
    for (const kind of new Set([...this.calls.keys(), ...counts.keys()])) {
      const range = this.calls.get(kind) ?? (this.requests > 0 ? new Range(0) : null)
      this.calls.set(kind, ranged(range, counts.get(kind) ?? 0))
    }
  }
}

function ranged (range, number) {
  if (range === null) return new Range(number)
  range.add(number)
  return range
}

function labelOf (span) {
  return `${span.kind} ${callOf(span)?.name ?? span.name}`
}

/**
 * @param {object[]} requests that lib/features/testing/budget.js found, each with the name of its route
 * @returns {Map<string, Route>}
 */
function routesOf (requests) {
  const routes = new Map()
  for (const request of requests) {
    if (request.isCut) continue // its parent is missing
    if (!routes.has(request.route)) routes.set(request.route, new Route())
    routes.get(request.route).add(request)
  }
  return routes
}

/** @returns {string[]} a line for each change, which begins with `+`, `-` or `!` as in a diff */
function changesOf (before, now) {
  const lines = []
  if (`${before.spans}` !== `${now.spans}`) lines.push(`! spans: ${before.spans} → ${now.spans}`)
  for (const kind of [...new Set([...before.calls.keys(), ...now.calls.keys()])].sort()) {
    const [was, is] = [before, now].map(({ calls }) => String(calls.get(kind) ?? 0))
    if (was !== is) lines.push(`! calls of ${kind}: ${was} → ${is}`)
  }
  lines.push(...placeChanges(before, now))
  lines.push(...setChanges(before.errors, now.errors, 'error: '))
  for (const [label, keys] of now.attributes) {
    const own = before.attributes.get(label)
    if (own !== undefined) lines.push(...setChanges(own, keys, `${label}: `)) // otherwise all of the span is new
  }
  return lines
}

function placeChanges (before, now) {
  const lines = []
  const todo = [[before.top, now.top]]
  while (todo.length > 0) {
    const [was, is] = todo.pop()
    for (const label of new Set([...was.below.keys(), ...is.below.keys()])) {
      const [from, to] = [was.below.get(label), is.below.get(label)]
      if (to === undefined) lines.push(`- ${from.path}${times(countOf(from, before))}`)
      else if (from === undefined) lines.push(`+ ${to.path}${times(countOf(to, now))}`)
      else if (countOf(from, before) !== countOf(to, now)) lines.push(`! ${to.path}: ${countOf(from, before)} → ${countOf(to, now)}`)
      todo.push([from ?? NOWHERE, to ?? NOWHERE])
    }
  }
  return lines
}

const NOWHERE = new Place('', null)

function countOf ({ counted, seen }, { requests }) {
  if (counted === null) return '0' // a place between others, without spans of its own
  if (seen < requests) counted.add(0)
  return String(counted)
}

function times (count) {
  return count === '1' ? '' : ` (${count})`
}

function setChanges (before, now, prefix) {
  return [
    ...[...before].filter((each) => !now.has(each)).sort().map((each) => `- ${prefix}${each}`),
    ...[...now].filter((each) => !before.has(each)).sort().map((each) => `+ ${prefix}${each}`)
  ]
}

/** Describes a route that did not exist before. */
function contentsOf (route) {
  return [`spans: ${route.spans}`, ...[...route.calls].sort().map(([kind, range]) => `calls of ${kind}: ${range}`), ...[...route.errors].sort().map((error) => `error: ${error}`)]
}

module.exports = { routesOf, changesOf, contentsOf }
