'use strict'

// GET /api/services: the services, the databases, hosts and queues that they call, and who calls whom, from the stored traces.
//
// Computed when it is requested, and not with each span: who called is known only when both spans of a call have arrived, an interval needs
// other figures than the whole, and a percentile cannot forget the calls of an evicted trace. Finding the calls of a trace is what takes time,
// so they are kept until the trace changes or is evicted.

const { STATUS_ERROR } = require('../otlp/names')
const { conditionText } = require('../store/condition')
const { BadParameter, integer } = require('../store/parameters')
const { Search, filterOf } = require('../store/search')
const { Slices } = require('../store/slices')
const { startOf, rounded } = require('../store/summary')
const { isRequest } = require('../store/trace')
const { layOut } = require('../views/service-layout')
const { callsOf, serviceNamed } = require('./calls')
const { percentile } = require('./routes')

const NODES_MAX = 200
const EDGES_MAX = 1000
const SEARCH_MAX_MS = 2000

// What is known while the busiest are searched for, so that a sender of a million names cannot fill the memory.
const PEERS_KNOWN_MAX = 2000
const EDGES_KNOWN_MAX = 10_000
const CALLS_KEPT_MAX = 100_000 // about 4 MB

const RATE_SHORTEST_MS = 10_000 // one request is not one per second
const RATE_LONGEST_MS = 86_400_000 // a sender's clock may be years off

const SIDES = ['calls', 'callers']
const WIDTH_MAX = 100_000

class Services {
  #store
  #peers = new Map() // id → one object for each node
  #edges = new Map() // from → to → one object for each edge
  #edgeCount = 0
  #kept = new Map() // trace → { version, calls, more }
  #keptCalls = 0
  #work = Promise.resolve()
  /** Grows with each change, for /api/events. */
  version = 0

  constructor (store) {
    this.#store = store
    store.on('change', () => { this.version++ })
    store.on('evict', (trace) => this.#forget(trace))
  }

  /** The number of calls that are kept, for tests of the bounds. */
  get keptCalls () { return this.#keptCalls }

  /**
   * @param {URLSearchParams} query the parameters of GET /api/traces narrow the traces; `of` and `side` narrow the map to what a node calls and what calls it;
   *   `layout` is the width of a drawing whose places are in the answer, too
   * @throws BadParameter
   */
  list (query, nowMs = Date.now()) {
    const filter = filterOf(query, nowMs)
    const side = query.get('side') || ''
    if (side !== '' && !SIDES.includes(side)) throw new BadParameter(`side: must be ${SIDES.join(' or ')}`)
    const width = integer(query, 'layout', 1, WIDTH_MAX)
    // One at a time: each would need the memory for all durations.
    const answer = this.#work.then(() => this.#compute(filter, query.get('of') || '', side, nowMs))
    this.#work = answer.then(() => {}, () => {})
    return width === undefined ? answer : answer.then((map) => ({ ...map, layout: layOut(map.nodes, map.edges, width) }))
  }

  async #compute (filter, of, side, nowMs) {
    if (this.#peers.size >= PEERS_KNOWN_MAX || this.#edgeCount >= EDGES_KNOWN_MAX) this.#forgetAll()
    const search = new Search(this.#store, filter, { maxMs: SEARCH_MAX_MS })
    const slices = new Slices()
    const sum = { nodes: new Map(), edges: new Map(), more: 0, starts: [], sinceMs: this.#store.sinceMs }
    let isComplete = true
    for await (const trace of search) {
      isComplete = await this.#adds(sum, trace, slices)
      if (!isComplete) break
    }
    const answer = await slices.run(answerOf(sum, { nowMs, of, side }))
    return isComplete && search.stoppedBefore === null ? answer : { ...answer, incomplete: true }
  }

  /** @returns {Promise<boolean>} false if there was no time for the trace: nothing of it is added */
  async #adds (sum, trace, slices) {
    const steps = this.#add(sum, trace)
    while (!steps.next().done) {
      if (!slices.isDue) continue
      if (slices.tookMs > SEARCH_MAX_MS) return false
      await slices.rest()
    }
    if (slices.isDue) await slices.rest()
    return true
  }

  * #add (sum, trace) {
    const kept = this.#kept.get(trace)
    const { calls, more } = kept?.version === trace.version ? kept : yield * this.#read(trace)
    sum.more += more
    const startMs = startOf(trace)
    const isRated = startMs >= sum.sinceMs
    sum.starts.push(startMs)
    for (const { edge, span, failed } of calls) figuresOf(sum.edges, edge).add(span, failed, trace, isRated)
    for (const { service } of trace.origins) this.#nodeOf(sum, service)
    for (let i = 0; i < trace.spans.length; i++) {
      const span = trace.spans[i]
      if (isRequest(span)) this.#nodeOf(sum, span.origin.service)?.add(span, span.status === STATUS_ERROR, trace, isRated)
    }
  }

  #nodeOf (sum, service) {
    const peer = this.#peers.get(`service:${service}`) ?? this.#peer(serviceNamed(service))
    return peer === null ? undefined : figuresOf(sum.nodes, peer)
  }

  * #read (trace) {
    this.#forget(trace)
    const { version } = trace
    const read = { version, calls: [], more: 0 }
    for (const { from, to, span, failed } of yield * callsOf(trace)) {
      const edge = this.#edge(from, to)
      if (edge === null) read.more++
      else read.calls.push({ edge, span, failed })
    }
    const isHeld = this.#store.get(trace.id) === trace // it may have been evicted meanwhile
    if (isHeld && trace.version === version && this.#keptCalls + read.calls.length + 1 <= CALLS_KEPT_MAX) {
      this.#kept.set(trace, read)
      this.#keptCalls += read.calls.length + 1
    }
    return read
  }

  #edge (from, to) {
    const [source, target] = [this.#peer(from), this.#peer(to)]
    if (source === null || target === null) return null
    let targets = this.#edges.get(source)
    if (targets === undefined) this.#edges.set(source, targets = new Map())
    let edge = targets.get(target)
    if (edge === undefined) {
      if (this.#edgeCount >= EDGES_KNOWN_MAX) return null
      this.#edgeCount++
      targets.set(target, edge = { from: source, to: target })
    }
    return edge
  }

  #peer (peer) {
    const known = this.#peers.get(peer.id)
    if (known !== undefined) return known
    if (this.#peers.size >= PEERS_KNOWN_MAX) return null
    this.#peers.set(peer.id, peer)
    return peer
  }

  #forget (trace) {
    const kept = this.#kept.get(trace)
    if (kept === undefined) return
    this.#keptCalls -= kept.calls.length + 1
    this.#kept.delete(trace)
  }

  #forgetAll () {
    this.#peers.clear()
    this.#edges.clear()
    this.#edgeCount = 0
    this.#kept.clear()
    this.#keptCalls = 0
  }
}

class Figures {
  count = 0
  rated = 0 // of the time over which rates are
  errors = 0
  durations = []
  slowestMs = -1
  slowest = null
  failed = null

  // Traces come newest first, so the first that failed is the last failure.
  add ({ durationMs }, failed, { id }, isRated) {
    this.count++
    if (isRated) this.rated++
    this.durations.push(durationMs)
    if (durationMs > this.slowestMs) {
      this.slowestMs = durationMs
      this.slowest = id
    }
    if (!failed) return
    this.errors++
    this.failed ??= id
  }

  merge ({ count, rated, errors, durations, slowestMs, slowest, failed }) {
    this.count += count
    this.rated += rated
    this.errors += errors
    for (const each of durations) this.durations.push(each)
    if (slowestMs > this.slowestMs) {
      this.slowestMs = slowestMs
      this.slowest = slowest
    }
    this.failed ??= failed
  }

  of (overMs) {
    const sorted = Float64Array.from(this.durations).sort()
    const at = (share) => sorted.length === 0 ? null : rounded(percentile(sorted, share))
    return { errors: this.errors, perSecond: overMs === null ? null : rounded(this.rated / (overMs / 1000)), p50Ms: at(0.5), p99Ms: at(0.99), slowest: this.slowest, failed: this.failed }
  }
}

function figuresOf (map, key) {
  let figures = map.get(key)
  if (figures === undefined) map.set(key, figures = new Figures())
  return figures
}

// Stops after each node and edge, because one may have the durations of all calls.
function * answerOf ({ nodes, edges, more, starts, sinceMs }, { nowMs, of, side }) {
  for (const [{ from, to }, figures] of edges) {
    // A service has figures of its own requests. The others have those of the calls.
    if (to.kind !== 'service') figuresOf(nodes, to).merge(figures)
    else if (from.kind === 'client') figuresOf(nodes, from).merge(figures)
    figuresOf(nodes, from)
    yield
  }
  const isId = [...nodes.keys()].some(({ id }) => id === of)
  const near = of === '' ? null : nearTo(isId ? of : serviceNamed(of).id, side, edges.keys())
  // With equal counts by name, so that the order stays the same.
  const byCount = ([a, { count }], [b, { count: other }]) => other - count || compare(a.id ?? a.from.id + a.to.id, b.id ?? b.from.id + b.to.id)
  // Services come first: the thousand hosts of a crawler must not hide one.
  const isCaller = ([{ kind }]) => kind === 'service' || kind === 'client' ? 1 : 0
  const shown = [...nodes].filter(([{ id }]) => near === null || near.nodes.has(id)).sort((a, b) => isCaller(b) - isCaller(a) || byCount(a, b)).slice(0, NODES_MAX)
  const kept = new Set(shown.map(([node]) => node))
  const wanted = [...edges].filter(([edge]) => near === null || near.edges.has(edge)).sort(byCount)
  const drawn = wanted.filter(([{ from, to }]) => kept.has(from) && kept.has(to)).slice(0, EDGES_MAX)
  const calls = (list) => list.reduce((sum, [, { count }]) => sum + count, 0)
  const overMs = overOf(starts, sinceMs, nowMs)
  const answer = { nowMs, overMs, nodes: [], edges: [], more: more + calls(wanted) - calls(drawn) }
  for (const [{ id, name, kind, system, facts }, figures] of shown) {
    const where = facts.map((fact) => conditionText({ ...fact, attribute: true }))
    answer.nodes.push({ id, name, kind, system, where, requests: figures.count, ...figures.of(overMs) })
    yield
  }
  for (const [{ from, to }, figures] of drawn) {
    answer.edges.push({ from: from.id, to: to.id, calls: figures.count, ...figures.of(overMs) })
    yield
  }
  return answer
}

// What a node depends on, and what depends on it. Producers and consumers both depend on their queue, and the queue on neither.
function nearTo (start, side, edges) {
  const found = { nodes: new Set([start]), edges: new Set() }
  const links = [...edges].map((edge) => edge.from.kind === 'messaging' ? { edge, user: edge.to.id, used: edge.from.id } : { edge, user: edge.from.id, used: edge.to.id })
  if (side !== 'callers') follow(links, 'user', 'used')
  if (side !== 'calls') follow(links, 'used', 'user')
  return found

  function follow (links, here, there) {
    const from = new Map()
    for (const link of links) {
      if (from.has(link[here])) from.get(link[here]).push(link)
      else from.set(link[here], [link])
    }
    const reached = new Set([start])
    for (const id of reached) {
      for (const link of from.get(id) ?? []) {
        found.edges.add(link.edge)
        reached.add(link[there])
      }
    }
    for (const id of reached) found.nodes.add(id)
  }
}

// Rates are over the time in which requests came: with the time since then, they would fall to 0.0 as soon as nobody sends. Of the time before
// `sinceMs` not all of them are stored.
function overOf (starts, sinceMs, nowMs) {
  let newest = -Infinity
  for (const startMs of starts) if (startMs <= nowMs) newest = Math.max(newest, startMs)
  if (newest < sinceMs && newest !== -Infinity) return null
  let oldest = newest
  for (const startMs of starts) if (startMs >= newest - RATE_LONGEST_MS) oldest = Math.min(oldest, startMs)
  return Math.max(RATE_SHORTEST_MS, newest - Math.max(oldest, sinceMs)) || RATE_SHORTEST_MS
}

function compare (a, b) {
  return a < b ? -1 : a > b ? 1 : 0
}

module.exports = { Services }
