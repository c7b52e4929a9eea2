'use strict'

// So many traces a second, shared over routes: rare routes are taken whole, busy ones share what is left.
//
//   arrivals   60/s   10/s   1/s        of three routes, for 20 a second:
//   share     9.5/s  9.5/s   1/s        the water level is 9.5
//   taken       16 %   95 %  100 %
//
// A request is taken with the probability level * brake / arrivals, which is fixed before its random bits are looked at. That
// makes its span countable, whatever comes and goes:
//
//   arrivals   of its route in about two seconds, itself among them: those of a route that suddenly gets load count at once
//   level      the highest share of a route, computed anew five times a second
//   brake      e^-debt, in seconds' worth, or in traces below one a second: what was taken beyond the rate is made up for, and
//              what is left is made use of
//
// Time and randomness are given: nothing here reads a clock.

const { thresholdText, ALWAYS } = require('../context/tracestate')

const LOOK_MS = 200

// The mean age of the arrivals that count. Bunches of requests once a second get a steady probability, and a route that has
// lost its load gives its share away within seconds.
const MEMORY_SECONDS = 2

// In seconds' worth of the rate. Little of what was left unused is kept: a burst would take it at once. A start is like the end
// of a burst.
const CREDIT_SECONDS = 0.3
const DEBT_SECONDS_AT_START = 0.5

const BRAKE_MIN = 1 / 32 // no span stands for more than 32 times what it would without a brake
const ARRIVALS_MIN = 0.1 // a route with less is not active
const FORGOTTEN_MS = 60 * 60 * 1000 // after so long without a request the next one is taken whatever the rate is

// Thresholds of 24 bits: 6 digits of `th`.
const TWO_24 = 0x1000000
const TAKE_ALWAYS = `ot=th:${ALWAYS}`

/** How often a route is asked for. */
class RouteRate {
  /** @param {number} seenAt when it last was active */
  constructor (seenAt = -Infinity) {
    this.arrivals = 0.5 // fading; not 0, a small integer to V8, which would give up what it has compiled at the first fraction
    this.isActive = false
    this.seenAt = seenAt
  }
}

class FairRate {
  /** @param {number} perSecond more than 0 */
  constructor (perSecond) {
    this.perSecond = perSecond
    this.brakeOver = Math.max(perSecond, 1)
    this.active = []
    this.level = perSecond * MEMORY_SECONDS
    this.allowance = 0 // level * brake, of 2^24
    this.debt = perSecond * DEBT_SECONDS_AT_START // traces that were taken beyond the rate; below zero a credit
    this.paidAt = NaN
    this.lookedAt = -Infinity
    this.lookAt = -Infinity
  }

  /**
   * The tracestate of a new trace, or '' where it is not taken. One that is taken by chance has a string of its own.
   * @param {RouteRate} route
   * @param {number} random 24 random bits of the trace id
   * @param {number} now milliseconds on a monotonic clock
   */
  // HOT, once per request without a caller. Budget: 0 objects, 0 strings where it is not taken.
  take (route, random, now) {
    if (now >= this.lookAt) this.look(now)
    if (!route.isActive && this.isForgotten(route, now)) return this.taken(0, now)
    const taken = Math.max(1, Math.floor(this.allowance / ++route.arrivals))
    return random < TWO_24 - taken ? '' : this.taken(Math.max(0, TWO_24 - taken), now)
  }

  /** Makes it active. Returns whether nobody has asked for it for an hour. */
  isForgotten (route, now) {
    route.isActive = true
    this.active.push(route)
    const isForgotten = now - route.seenAt >= FORGOTTEN_MS
    route.arrivals = isForgotten ? 1 : 0
    return isForgotten
  }

  taken (threshold, now) {
    this.debt++
    this.settle(now)
    return threshold === 0 ? TAKE_ALWAYS : `ot=th:${thresholdText(threshold, 0)}`
  }

  settle (now) {
    const { perSecond } = this
    const seconds = (now - this.paidAt) / 1000 || 0 // NaN at first
    if (seconds >= 0) {
      this.paidAt = now
      this.debt = Math.max(this.debt - perSecond * seconds, -CREDIT_SECONDS * perSecond)
    }
    this.allowance = this.level * Math.max(Math.exp(-this.debt / this.brakeOver), BRAKE_MIN) * TWO_24
  }

  look (now) {
    const { active } = this
    const kept = Math.exp((this.lookedAt - now) / 1000 / MEMORY_SECONDS)
    let count = 0
    for (const route of active) {
      route.arrivals *= kept
      route.isActive = route.arrivals >= ARRIVALS_MIN
      if (route.isActive) active[count++] = route
      else route.seenAt = this.lookedAt
    }
    active.length = count
    this.lookedAt = now
    this.lookAt = now + LOOK_MS
    this.level = waterLevel(active, this.perSecond * MEMORY_SECONDS)
    this.settle(now)
  }
}

/** The share up to which the arrivals of each route are met, so that all together are `budget`. Sorts the routes. */
function waterLevel (routes, budget) {
  routes.sort(byArrivals)
  let rest = budget
  for (let i = 0; i < routes.length; i++) {
    const share = rest / (routes.length - i)
    if (routes[i].arrivals > share) return share
    rest -= routes[i].arrivals
  }
  // All are met. Any one route may take the rest besides.
  return routes.length === 0 ? budget : routes[routes.length - 1].arrivals + rest
}

function byArrivals (a, b) {
  return a.arrivals - b.arrivals
}

module.exports = { FairRate, RouteRate }
