'use strict'

// Counts requests by route. Counts start with the viewer; the other figures are of the last RING_MAX requests of a route. Times are those at
// which the viewer received a request, so that no sender's clock matters.

const { KIND_SERVER, STATUS_ERROR } = require('../otlp/names')
const { routeOf, rounded } = require('../store/summary')
const { repeatsOf } = require('../views/repeats')
const { waitsOf, longestWait, WAITS } = require('../views/waits')

const BUCKETS_MS = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
const SLOT_MS = 10_000
const SLOTS_MAX = 60
const RATE_SECONDS = 60
const RING_MAX = 1000
const ROUTES_MAX = 500
const REPEATS_MAX = 10 // shapes of repeated calls for each route
const READ_MAX = 100 // spans of a request that are searched for repeated calls

class RouteStatistics {
  #routes = new Map()
  #store
  #now
  #onRepeats
  #slotMs
  #rateFromMs
  uncounted = 0
  version = 0

  /**
   * @param {object} store
   * @param {{ now?: () => number, slotMs?: number, rateFromMs?: number, onRepeats?: (route: string, repeats: object) => void }} [options]
   *   rateFromMs: rates are over the time since then, not over the last minute. onRepeats: called once for each route and shape
   */
  constructor (store, { now = Date.now, slotMs = SLOT_MS, rateFromMs = undefined, onRepeats = () => {} } = {}) {
    this.#store = store
    this.#onRepeats = onRepeats
    this.#now = now
    this.#slotMs = slotMs
    this.#rateFromMs = rateFromMs
    store.on('span', (trace, span) => { if (span.kind === KIND_SERVER) this.#count(trace, span) })
  }

  #count (trace, span) {
    this.version++
    const route = routeOf(span)
    const name = route ?? span.name
    const key = `${span.origin.service}\n${route === null ? '?' : ''}${name}`
    let entry = this.#routes.get(key)
    if (entry === undefined) {
      if (this.#routes.size >= ROUTES_MAX) {
        this.uncounted++
        return
      }
      this.#routes.set(key, entry = new Route(name, span.origin.service, route === null, this.#slotMs, this.#rateFromMs))
    }
    entry.count(trace.order, trace.spans.length - 1, span, this.#now())
    for (const repeats of repeatsIn(trace, span)) if (entry.addRepeats(repeats)) this.#onRepeats(name, repeats)
  }

  /** The answer of GET /api/routes. */
  list () {
    const nowMs = this.#now()
    const routes = [...this.#routes.values()].map((route) => route.figures(nowMs, this.#store))
    return {
      nowMs, buckets: BUCKETS_MS, slotMs: this.#slotMs, routes: routes.sort((a, b) => b.count - a.count), more: this.uncounted
    }
  }

  /** The stored requests of a route, newest first, as { trace, span }. Without `service`, those of the busiest service with this route. */
  held (name, service, max) {
    const found = [...this.#routes.values()].filter((route) => route.name === name && (service === undefined || route.service === service))
      .sort((a, b) => b.total - a.total)
    return found.length === 0 ? [] : found[0].held(this.#store, max)
  }

  /** The trace of the successful request with the median duration. `except` is left out. */
  medianOf (name, service, except) {
    const requests = this.held(name, service, RING_MAX).filter(({ trace, span }) => trace !== except && span.status !== STATUS_ERROR)
    requests.sort((a, b) => a.span.durationMs - b.span.durationMs)
    return requests[requests.length >> 1]?.trace
  }
}

class Route {
  constructor (name, service, unrouted, slotMs, rateFromMs) {
    this.name = name
    this.service = service
    this.unrouted = unrouted
    this.slotMs = slotMs
    this.rateFromMs = rateFromMs
    this.rated = 0 // since rateFromMs
    this.total = 0
    this.errors = 0
    this.firstMs = 0
    this.lastMs = 0
    this.lastMinute = new LastMinute()
    this.ring = [] // requests as { durationMs, order, place, failed }. Not their traces, which may be evicted.
    this.repeats = new Map() // shape → { shape, requests, calls, savedMs }
    this.slow = null // number of requests for each longest wait
    this.slots = new Map() // slot number → a count for each bucket, and the number of errors last
  }

  count (order, place, span, now) {
    if (this.total === 0) this.firstMs = now
    const failed = span.status === STATUS_ERROR ? 1 : 0
    this.ring[this.total++ % RING_MAX] = { durationMs: span.durationMs, order, place, failed }
    this.errors += failed
    if (now >= this.rateFromMs) this.rated++
    this.lastMs = now
    this.lastMinute.add(now)
    const waits = waitsOf(span)
    if (waits !== undefined) (this.slow ??= WAITS.map(() => 0))[longestWait(waits)]++
    this.#slot(now, span.durationMs, failed)
  }

  /** @returns {boolean} whether the shape is new */
  addRepeats ({ shape, count, savedMs }) {
    let found = this.repeats.get(shape)
    const isFirst = found === undefined
    if (isFirst) {
      if (this.repeats.size >= REPEATS_MAX) return false
      this.repeats.set(shape, found = { shape, requests: 0, calls: 0, savedMs: 0 })
    }
    found.requests++
    found.calls += count
    found.savedMs += savedMs
    return isFirst
  }

  #slot (now, durationMs, failed) {
    const number = Math.floor(now / this.slotMs)
    let counts = this.slots.get(number)
    if (counts === undefined) {
      this.slots.set(number, counts = new Uint32Array(BUCKETS_MS.length + 2))
      for (const old of this.slots.keys()) if (old <= number - SLOTS_MAX) this.slots.delete(old)
    }
    let bucket = 0
    while (bucket < BUCKETS_MS.length && durationMs > BUCKETS_MS[bucket]) bucket++
    counts[bucket]++
    counts[counts.length - 1] += failed
  }

  figures (now, store) {
    const sorted = Float64Array.from(this.ring, ({ durationMs }) => durationMs).sort()
    const p50Ms = percentile(sorted, 0.5)
    return {
      route: this.name,
      service: this.service,
      unrouted: this.unrouted,
      count: this.total,
      errors: this.errors,
      perSecond: this.#perSecond(now),
      p50Ms: rounded(p50Ms),
      p99Ms: rounded(percentile(sorted, 0.99)),
      maxMs: rounded(sorted.at(-1)),
      lastMs: this.lastMs,
      ...this.slow !== null && { slow: this.slow },
      ...this.repeats.size > 0 && {
        repeats: [...this.repeats.values()].sort((a, b) => b.calls - a.calls)
          .map(({ shape, requests, calls, savedMs }) => ({ shape, requests, perRequest: rounded(calls / requests), savedMs: rounded(savedMs / requests) }))
      },
      histogram: this.#histogram(now),
      ...this.#examples(store, p50Ms)
    }
  }

  // Few requests are counted as they are. The rate of many is right from the first seconds on.
  #perSecond (now) {
    if (this.rateFromMs !== undefined) {
      if (now < this.rateFromMs) return null
      const perSecond = this.rated / Math.max(1, (now - this.rateFromMs) / 1000)
      return rounded(perSecond) || perSecond // a low rate is not zero
    }
    const requests = this.lastMinute.total(now)
    const seconds = requests < RATE_SECONDS ? RATE_SECONDS : Math.min(RATE_SECONDS, Math.max(1, (now - this.firstMs) / 1000))
    return Math.round(requests / seconds * 1e4) / 1e4
  }

  #histogram (now) {
    const current = Math.floor(now / this.slotMs)
    return [...this.slots].filter(([number]) => number > current - SLOTS_MAX).map(([number, counts]) => ({
      atMs: number * this.slotMs, counts: [...counts.subarray(0, -1)], errors: counts[counts.length - 1]
    }))
  }

  #examples (store, p50Ms) {
    const held = [...this.#newestFirst(store)]
    const least = (cost) => held.reduce((best, each) => best === undefined || cost(each) < cost(best) ? each : best, undefined)?.trace.id ?? null
    return {
      slowest: least(({ durationMs }) => -durationMs),
      failed: held.find(({ failed }) => failed === 1)?.trace.id ?? null,
      median: least(({ durationMs }) => Math.abs(durationMs - p50Ms)),
      latest: held[0]?.trace.id ?? null
    }
  }

  held (store, max) {
    return [...this.#newestFirst(store)].slice(0, max).map(({ trace, place }) => ({ trace, span: trace.spans[place] }))
  }

  // The requests whose traces are still stored.
  * #newestFirst (store) {
    for (let back = 1; back <= this.ring.length; back++) {
      const request = this.ring[(this.total - back) % RING_MAX]
      const trace = store.at(request.order)
      if (trace !== undefined) yield { ...request, trace }
    }
  }
}

/** Counts by the second. */
class LastMinute {
  #counts = new Uint32Array(RATE_SECONDS)
  #newest = 0 // the second of the last count

  add (now) {
    this.#moveTo(now)
    this.#counts[this.#newest % RATE_SECONDS]++
  }

  total (now) {
    this.#moveTo(now)
    return sum(this.#counts)
  }

  #moveTo (now) {
    const second = Math.floor(now / 1000)
    for (let passed = Math.max(this.#newest, second - RATE_SECONDS) + 1; passed <= second; passed++) this.#counts[passed % RATE_SECONDS] = 0
    if (second > this.#newest) this.#newest = second
  }
}

// The repeated calls of the request's span and of the spans inside it. Those ended earlier, so they were received earlier.
function repeatsIn ({ spans }, server) {
  return [server, ...spans.slice(-READ_MAX).filter((span) => span !== server && span.kind !== KIND_SERVER && span.origin === server.origin)].map(repeatsOf).filter(Boolean)
}

// Uses the nearest rank, so the result is a duration that was measured.
function percentile (sorted, share) {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]
}

function sum (counts) {
  let total = 0
  for (const count of counts) total += count
  return total
}

module.exports = { RouteStatistics, percentile }
