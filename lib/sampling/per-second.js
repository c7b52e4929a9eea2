'use strict'

// So many traces a second, shared over routes: rare routes are served first, busy ones share what is left. Each route has a
// probability, which is adjusted once a second and holds for all its requests until then; that is what makes its spans
// countable. In a burst it is lowered before the second is over.
//
//   demand     60/s   10/s   1/s        of three routes, for 20 a second:
//   share     9.5/s  9.5/s   1/s        the water level is 9.5
//   taken       16 %   95 %  100 %
//
// Time and randomness are given: nothing here reads a clock.

const { thresholdText, ALWAYS } = require('../context/tracestate')

const ADJUST_MS = 1000
const ADJUST_SOON_MS = 125 // after a burst: how it is spread over the routes is not known yet

// Requests between two looks at the pace, as a part of a second's.
const PACE_LOOKS_PER_SECOND = 16
const PACE_LOOK_MIN = 8
const BURST_FACTOR = 2
// How far ahead of an even pace a second may be before a burst counts: a page that loads asks for many things at once.
const AHEAD_SECONDS = 0.25

// A surplus is made up for within a second or two, but never by taking next to nothing. Little of what was left unused is
// kept: a burst would take it at once.
const BUDGET_MIN = 0.25
const BUDGET_MAX = 1.2
const DEBT_SECONDS_MAX = 2

const DEMAND_MIN = 0.05 // requests a second; below it a route is not active
const FORGOTTEN_MS = 60 * 60 * 1000 // after so long without a request the next one is taken whatever the rate is

// Thresholds of 24 bits: 6 digits of `th`.
const TWO_24 = 0x1000000
const TAKE_ALWAYS = `ot=th:${ALWAYS}`

/** The probability of one route, and how often it is asked for. */
class RouteRate {
  constructor () {
    this.threshold = 0 // a request is taken when its random bits are at least this
    this.tracestate = TAKE_ALWAYS
    this.arrivals = 0 // since the last adjustment
    this.demand = 0 // requests a second, falling slowly
    this.isActive = false
    this.seenAt = -Infinity // when it last was active
  }

  setProbability (probability) {
    const threshold = Math.min(TWO_24 - 1, Math.round((1 - probability) * TWO_24))
    if (threshold === this.threshold) return
    this.threshold = threshold
    this.tracestate = threshold === 0 ? TAKE_ALWAYS : `ot=th:${thresholdText(threshold, 0)}`
  }
}

class FairRate {
  /** @param {number} perSecond more than 0 */
  constructor (perSecond) {
    this.perSecond = perSecond
    this.active = []
    this.arrivals = 0 // since the last look at the pace
    this.lookAfter = Math.max(PACE_LOOK_MIN, perSecond / PACE_LOOKS_PER_SECOND)
    this.lookedAt = 0
    this.taken = 0 // since the last adjustment
    this.startedAt = -Infinity // of the last adjustment
    this.adjustAt = -Infinity
    this.demand = 0 // of all routes
    this.balance = 0 // traces that were not taken though they might have been; below zero a debt
    this.idle = new RouteRate() // the threshold of routes that are not active
  }

  /**
   * The tracestate of a new trace, or '' where it is not taken.
   * @param {RouteRate} route
   * @param {number} random 24 random bits of the trace id
   * @param {number} now milliseconds on a monotonic clock
   */
  // HOT, once per request without a caller. Budget: 0 objects, 0 strings.
  take (route, random, now) {
    if (now >= this.adjustAt || this.arrivals >= this.lookAfter) this.look(now)
    this.arrivals++
    if (!route.isActive) return this.takeFirst(route, random, now)
    route.arrivals++
    if (random < route.threshold) return ''
    this.taken++
    return route.tracestate
  }

  takeFirst (route, random, now) {
    const isForgotten = now - route.seenAt >= FORGOTTEN_MS
    route.isActive = true
    route.arrivals = 1
    route.demand = 0
    route.threshold = this.idle.threshold
    route.tracestate = this.idle.tracestate
    this.active.push(route)
    if (!isForgotten && random < route.threshold) return ''
    this.taken++
    return isForgotten ? TAKE_ALWAYS : route.tracestate
  }

  look (now) {
    if (now >= this.adjustAt) this.adjust(now)
    else this.slowDown(now)
    this.lookedAt = now
    this.arrivals = 0
    this.lookAfter = Math.max(PACE_LOOK_MIN, Math.max(this.demand, this.perSecond) / PACE_LOOKS_PER_SECOND)
  }

  /** Lowers all routes alike where requests come much faster than expected, until it is known which. */
  slowDown (now) {
    const expected = Math.max(this.demand, this.perSecond)
    const pace = this.arrivals * 1000 / Math.max(now - this.lookedAt, 0.01)
    const debt = this.taken - this.balance - this.perSecond * (now - this.startedAt) / 1000
    if (pace < expected * BURST_FACTOR || debt < this.perSecond * AHEAD_SECONDS) return
    const part = expected / pace * Math.max(BUDGET_MIN, 1 - debt / this.perSecond)
    for (const route of this.active) scale(route, part)
    scale(this.idle, part)
    this.demand = pace
    this.adjustAt = Math.min(this.adjustAt, now + ADJUST_SOON_MS)
  }

  adjust (now) {
    const seconds = Math.min((now - this.startedAt) / 1000, DEBT_SECONDS_MAX)
    this.startedAt = now
    this.adjustAt = now + ADJUST_MS
    this.settle(seconds)
    this.measure(seconds, now)
    const budget = Math.min(Math.max(1 + this.balance / this.perSecond, BUDGET_MIN), BUDGET_MAX)
    const level = waterLevel(this.active, this.perSecond * budget)
    for (const route of this.active) route.setProbability(Math.min(1, level / route.demand))
    this.idle.setProbability(Math.min(1, level)) // the first request of such a route is most likely its only one
  }

  settle (seconds) {
    const { perSecond } = this
    const balance = this.balance + perSecond * seconds - this.taken
    this.taken = 0
    this.balance = Math.min(Math.max(balance, -DEBT_SECONDS_MAX * perSecond), (BUDGET_MAX - 1) * perSecond)
  }

  /** Updates the demands. One rises at once and falls by half in a second: a demand that is too low would exceed the rate. */
  measure (seconds, now) {
    const kept = 0.5 ** seconds
    let count = 0
    this.demand = 0
    for (const route of this.active) {
      const rate = route.arrivals / Math.max(seconds, 0.001)
      route.demand = Math.max(rate, rate + (route.demand - rate) * kept)
      if (route.arrivals > 0) route.seenAt = now
      route.arrivals = 0
      route.isActive = route.demand >= DEMAND_MIN
      if (!route.isActive) continue
      this.active[count++] = route
      this.demand += route.demand
    }
    this.active.length = count
  }
}

function scale (route, part) {
  route.setProbability((1 - route.threshold / TWO_24) * part)
}

/** The share up to which each route's demand is met, so that all together are `budget`; Infinity where all are met. */
function waterLevel (routes, budget) {
  let rest = budget
  let open = routes.length
  let level = 0
  // Each round meets the routes below the even share. There are a handful of rounds.
  for (;;) {
    const next = open === 0 ? Infinity : rest / open
    if (next <= level || next === Infinity) return next
    let left = budget
    open = 0
    for (const { demand } of routes) {
      if (demand <= next) left -= demand
      else open++
    }
    level = next
    rest = left
  }
}

module.exports = { FairRate, RouteRate }
