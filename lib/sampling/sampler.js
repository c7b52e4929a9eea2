'use strict'

// The sampler that an option stands for, and what its decision does to a trace.
//
// Head samplers decide when a trace begins, by ids and flags alone, before anything but the context is allocated. Those that
// decide by chance write the probability into the trace state (`ot=th`): it says for how many spans each exported one stands.
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { SAMPLED } = require('../context/trace-context.js')
const {
  ALWAYS, randomnessOf, thresholdOf, withThreshold, withoutThreshold, thresholdText, cleanTracestate
} = require('../context/tracestate.js')
const { atOnce } = require('../runtime/report.js')

// What a sampler answers, in the numbers of the OpenTelemetry SDK.
const DROP = 0
const RECORD = 1
const RECORD_AND_SAMPLE = 2

const TWO_56 = 72057594037927936n
const TWO_24 = 2 ** 24
// Of the 56 random bits of a trace id, those in its third word.
const HIGH_BITS = 0xffffff

// For so long after a drop by a limit the probability of being let through is unknown.
const BIASED_MS = 1000

/**
 * The sampler of what lib/config/sampling.js made of an option: the user's own object, or one of ours by its kind.
 */
function samplerOf (option, report) {
  if (typeof option.shouldSample === 'function') return new SdkSampler(option, report)
  const { kind, ratio, perSecond, parentBased } = option
  if (kind === 'per_second') return new PerSecond(perSecond)
  return kind === 'ratio' ? new Ratio(ratio, parentBased) : new HeadSampler(parentBased, kind === 'always_on')
}

/** Writes a decision into the trace that goes on: the sampled flag, and a trace state of the sampler's. */
function applyDecision (trace, { decision, tracestate }) {
  trace.flags = decision === RECORD_AND_SAMPLE ? trace.flags | SAMPLED : trace.flags & ~SAMPLED
  if (tracestate !== undefined) trace.tracestate = tracestate
}

/** The base of all samplers of ours. By itself it takes each new trace or none. */
class HeadSampler {
  constructor (parentBased, takesAll) {
    this.parentBased = parentBased
    this.takesAll = takesAll
    /** @type {false} */
    this.isCustom = false // ids and flags are enough to decide, see SdkSampler
    this.tracestate = '' // of each trace that starts here and is taken, where it is always the same
  }

  /**
   * Decides, and writes the threshold of a trace that it takes into the context.
   * @param {TraceContext | IncomingContext} context
   * @param {boolean} hasParent whether its ids came from a caller
   * @param {number} now milliseconds on the monotonic clock
   * @param {RouteInfo | undefined} route of a request
   */
  // HOT, once per request.
  decide (context, hasParent, now, route) {
    if (!hasParent) return this.decideRoot(context, now, route)
    if (this.parentBased) return (context.flags & SAMPLED) !== 0 ? RECORD_AND_SAMPLE : DROP
    return this.decideAnew(context)
  }

  decideRoot (_context, _now, _route) { return this.takesAll ? RECORD_AND_SAMPLE : DROP }

  /** The decision about a caller's trace, whatever the caller has decided: a threshold that came holds no longer. */
  decideAnew (context) {
    if (!this.takesAll) context.tracestate = withoutThreshold(context.tracestate)
    else if (thresholdOf(context.tracestate) !== '') context.tracestate = withThreshold(context.tracestate, ALWAYS)
    return this.takesAll ? RECORD_AND_SAMPLE : DROP
  }
}

/**
 * `sampler: 0.1`. W3C consistent probability sampling: a trace is taken when the least significant 56 bits of its id, which are
 * random, are at least (1 - ratio)*2^56. All services with the same ratio agree.
 * https://www.w3.org/TR/trace-context-2/#random-trace-id-flag
 */
class Ratio extends HeadSampler {
  constructor (ratio, parentBased) {
    super(parentBased, false)
    // 2^56 is beyond a double's integers; the threshold is kept as 24 high and 32 low bits.
    const threshold = TWO_56 - BigInt(Math.round(ratio * Number(TWO_56)))
    this.high = Number(threshold >> 32n)
    this.low = Number(threshold & 0xffffffffn)
    // All its digits: a shorter one would not be the threshold that decides.
    this.threshold = thresholdText(this.high, this.low)
    this.tracestate = withThreshold('', this.threshold)
  }

  decideRoot (context) {
    if (!this.takes(context.t2 & HIGH_BITS, context.t3 >>> 0)) return DROP
    context.tracestate = this.tracestate
    return RECORD_AND_SAMPLE
  }

  decideAnew (context) {
    const random = randomnessOf(context.tracestate)
    const isTaken = random === ''
      ? this.takes(context.t2 & HIGH_BITS, context.t3 >>> 0)
      : this.takes(parseInt(random.slice(0, 6), 16), parseInt(random.slice(6), 16))
    if (!isTaken) return super.decideAnew(context)
    context.tracestate = withThreshold(context.tracestate, this.threshold)
    return RECORD_AND_SAMPLE
  }

  takes (high, low) { return high === this.high ? low >= this.low : high > this.high }
}

/** `sampler: { perSecond }`. Callers that have decided are followed, and not counted. */
class PerSecond extends HeadSampler {
  constructor (perSecond) {
    super(true, false)
    this.rate = new FairRate(perSecond)
    this.elsewhere = new RouteRate() // traces that no request has started
  }

  decideRoot (context, now, route) {
    const { rate } = this
    if (route !== undefined && route.rate?.owner !== rate) route.rate = new RouteRate(-Infinity, rate)
    const tracestate = rate.take(route === undefined ? this.elsewhere : route.rate, context.t2 & HIGH_BITS, now)
    if (tracestate === '') return DROP
    context.tracestate = tracestate
    return RECORD_AND_SAMPLE
  }
}

/** `limits.sampledPerSecond`: lets through so many a second, with a burst of one second's worth. Time is given. */
class RateLimit {
  constructor (perSecond) {
    this.perSecond = perSecond
    this.burst = perSecond > 0 ? Math.max(1, perSecond) : 0 // less than one a second is one, less often
    this.tokens = this.burst
    this.filledAt = 0
    this.droppedAt = -Infinity
  }

  /** The decision about a trace that the sampler has taken. A threshold in its trace state holds only while nothing is dropped. */
  decide (context, nowMs) {
    const isTaken = this.take(nowMs)
    if (!isTaken) this.droppedAt = nowMs
    if (nowMs - this.droppedAt < BIASED_MS) context.tracestate = withoutThreshold(context.tracestate)
    return isTaken ? RECORD_AND_SAMPLE : DROP
  }

  take (nowMs) {
    const gained = (nowMs - this.filledAt) * this.perSecond / 1000
    this.filledAt = nowMs
    this.tokens = Math.min(this.burst, this.tokens + gained)
    if (this.tokens < 1) return false
    this.tokens--
    return true
  }
}

/** A Sampler in the shape of the OpenTelemetry SDK's. It is user code: a wrong answer means "not sampled" and is logged once. */
class SdkSampler {
  #sampler
  /** @type {Report} */ #report

  constructor (sampler, report) {
    this.#sampler = sampler
    this.#report = report
    /** @type {true} */
    this.isCustom = true // its answer depends on more than the ids, see SpanStarter
    this.tracestate = ''
  }

  /**
   * Asks as the SDK asks, with the ids that the span will have and the attributes that are known at its start.
   * @returns {{ decision: number, attributes: object | undefined, tracestate: string | undefined }}
   */
  ask (context, trace, name, kind, attributes, links) {
    try {
      const result = atOnce(this.#sampler.shouldSample(context, trace.traceId, name, kind, attributes, links))
      const { decision, attributes: added, traceState } = result
      if (decision === DROP || decision === RECORD || decision === RECORD_AND_SAMPLE) {
        return {
          decision,
          attributes: added !== null && typeof added === 'object' ? added : undefined,
          tracestate: traceState === undefined || traceState === null ? undefined : cleanTracestate(traceState.serialize())
        }
      }
      const answer = typeof decision === 'number' ? decision : typeof decision
      this.#report.warn('LT_WARN_SAMPLER', `the sampler returned ${answer}, which is no decision: its spans are not sampled`, 'answer')
    } catch (error) {
      this.#report.failed('LT_WARN_SAMPLER', 'the sampler failed; its spans are not sampled', error)
    }
    return { decision: DROP, attributes: undefined, tracestate: undefined }
  }
}

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

const TAKE_ALWAYS = `ot=th:${ALWAYS}`

/** How often a route is asked for. */
class RouteRate {
  /** @param {number} seenAt when it last was active @param {FairRate | null} owner of which it is a part: a change makes another */
  constructor (seenAt = -Infinity, owner = null) {
    this.owner = owner
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
   * @param {RouteRate} route @param {number} random 24 random bits of the trace id
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
  routes.sort((a, b) => a.arrivals - b.arrivals)
  let rest = budget
  for (let i = 0; i < routes.length; i++) {
    const share = rest / (routes.length - i)
    if (routes[i].arrivals > share) return share
    rest -= routes[i].arrivals
  }
  // All are met. Any one route may take the rest besides.
  return routes.length === 0 ? budget : routes[routes.length - 1].arrivals + rest
}

module.exports = { samplerOf, applyDecision, RateLimit, DROP, RECORD_AND_SAMPLE, FairRate, RouteRate }
