'use strict'

// Creates the configured sampler, and applies its decisions to a trace.
//
// Head samplers decide when a trace begins, by ids and flags alone, before anything but the context is allocated. Probability samplers
// write the probability into the trace state (`ot=th`), so that a backend knows how many spans each exported span represents.
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { SAMPLED } = require('../context/trace-context.js')
const {
  ALWAYS, randomnessOf, thresholdOf, withThreshold, withoutThreshold, thresholdText, cleanTracestate
} = require('../context/tracestate.js')
const { atOnce } = require('../runtime/report.js')

// A sampler's decisions, in the numbers of the OpenTelemetry SDK.
const DROP = 0
const RECORD = 1
const RECORD_AND_SAMPLE = 2

const TWO_56 = 72057594037927936n
const TWO_24 = 2 ** 24
// The 24 of a trace id's 56 random bits that are in its third word.
const HIGH_BITS = 0xffffff

// For this long after the rate limit has dropped a trace, the probability of passing it is unknown.
const BIASED_MS = 1000

/** Creates the sampler of an option that lib/config/sampling.js has resolved: the user's own object, or one of our kinds. */
function samplerOf (option, report) {
  if (typeof option.shouldSample === 'function') return new SdkSampler(option, report)
  const { kind, ratio, perSecond, parentBased } = option
  if (kind === 'per_second') return new PerSecond(perSecond)
  return kind === 'ratio' ? new Ratio(ratio, parentBased) : new HeadSampler(parentBased, kind === 'always_on')
}

/** Writes a decision into the trace: the sampled flag, and the sampler's trace state, if it returned one. */
function applyDecision (trace, { decision, tracestate }) {
  trace.flags = decision === RECORD_AND_SAMPLE ? trace.flags | SAMPLED : trace.flags & ~SAMPLED
  if (tracestate !== undefined) trace.tracestate = tracestate
}

/** The base class of our samplers. By itself it takes every new trace, or none. */
class HeadSampler {
  constructor (parentBased, takesAll) {
    this.parentBased = parentBased
    this.takesAll = takesAll
    /** @type {false} */
    this.isCustom = false // ids and flags are enough to decide, see SdkSampler
    this.tracestate = '' // the tracestate of each trace that starts here and is taken, if it is always the same
  }

  /**
   * Decides. If it takes the trace, writes the threshold into the context.
   * @param {TraceContext | IncomingContext} context
   * @param {boolean} hasParent whether its ids came from a caller
   * @param {number} now milliseconds on the monotonic clock
   * @param {RouteInfo | undefined} route the request's route; undefined for a trace that no request started
   */
  // HOT, once per request.
  decide (context, hasParent, now, route) {
    if (!hasParent) return this.decideRoot(context, now, route)
    if (this.parentBased) return (context.flags & SAMPLED) !== 0 ? RECORD_AND_SAMPLE : DROP
    return this.decideAnew(context)
  }

  decideRoot (_context, _now, _route) { return this.takesAll ? RECORD_AND_SAMPLE : DROP }

  /** Decides about a caller's trace independently of the caller's decision. The incoming threshold is no longer valid. */
  decideAnew (context) {
    if (!this.takesAll) context.tracestate = withoutThreshold(context.tracestate)
    else if (thresholdOf(context.tracestate) !== '') context.tracestate = withThreshold(context.tracestate, ALWAYS)
    return this.takesAll ? RECORD_AND_SAMPLE : DROP
  }
}

/**
 * `sampler: 0.1`. W3C consistent probability sampling: a trace is taken if the least significant 56 bits of its id, which are random,
 * are at least (1 - ratio)*2^56. So all services with the same ratio make the same decision.
 * https://www.w3.org/TR/trace-context-2/#random-trace-id-flag
 */
class Ratio extends HeadSampler {
  constructor (ratio, parentBased) {
    super(parentBased, false)
    // A double cannot represent all integers up to 2^56, so the threshold is kept as 24 high and 32 low bits.
    const threshold = TWO_56 - BigInt(Math.round(ratio * Number(TWO_56)))
    this.high = Number(threshold >> 32n)
    this.low = Number(threshold & 0xffffffffn)
    // Not shortened, because `th` must be exactly the threshold that decides.
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

/** `sampler: { perSecond }`. It follows the decisions of callers, and does not count them. */
class PerSecond extends HeadSampler {
  constructor (perSecond) {
    super(true, false)
    this.rate = new FairRate(perSecond)
    this.elsewhere = new RouteRate() // for traces that no request started
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

/** `limits.sampledPerSecond`: passes this many traces a second, with a burst of one second's worth. The caller passes the time. */
class RateLimit {
  constructor (perSecond) {
    this.perSecond = perSecond
    this.burst = perSecond > 0 ? Math.max(1, perSecond) : 0 // a rate below one a second needs a burst of one
    this.tokens = this.burst
    this.filledAt = 0
    this.droppedAt = -Infinity
  }

  /** Decides about a trace that the sampler has taken. The threshold in its trace state is valid only while nothing is dropped. */
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

/** Wraps a Sampler with the interface of the OpenTelemetry SDK. It is user code: an invalid result means "not sampled" and is logged once. */
class SdkSampler {
  #sampler
  /** @type {Report} */ #report

  constructor (sampler, report) {
    this.#sampler = sampler
    this.#report = report
    /** @type {true} */
    this.isCustom = true // it needs more than ids and flags to decide, see SpanStarter
    this.tracestate = ''
  }

  /**
   * Asks the sampler as the SDK does, with the ids that the span will have and the attributes that are known at its start.
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

// A number of traces a second, shared between routes. Rare routes are sampled completely, and busy routes share the rest.
//
//   arrivals   60/s   10/s   1/s        of three routes, for 20 a second:
//   share     9.5/s  9.5/s   1/s        the water level is 9.5
//   taken       16 %   95 %  100 %
//
// A request is taken with the probability level * brake / arrivals. The probability is fixed before the request's random bits are read.
// So the number of requests that a span represents is correct, however the load changes:
//
//   arrivals   of its route in about two seconds, including this request, so that a sudden load counts at once
//   level      the highest share of a route, computed five times a second
//   brake      e^-debt. The debt is in seconds of the rate, or in traces if the rate is below one a second. A positive debt (too many
//              traces were taken) lowers the probability; a negative debt (the rate was not used up) raises it
//
// The caller passes time and random bits. Nothing here reads a clock.

const LOOK_MS = 200

// The mean age of the arrivals that count. At this value, bursts of requests once a second get a steady probability, and a route whose load
// ends releases its share within seconds.
const MEMORY_SECONDS = 2

// In seconds of the rate. The credit for unused rate is small, because a burst would use it up at once. A start is treated like the end
// of a burst.
const CREDIT_SECONDS = 0.3
const DEBT_SECONDS_AT_START = 0.5

const BRAKE_MIN = 1 / 32 // a span represents at most 32 times as many requests as it would without the brake
const ARRIVALS_MIN = 0.1 // a route with fewer is not active
const FORGOTTEN_MS = 60 * 60 * 1000 // after this long without a request, the next one is taken whatever the rate is

const TAKE_ALWAYS = `ot=th:${ALWAYS}`

/** How often a route receives requests. */
class RouteRate {
  /** @param {number} seenAt when it was last active @param {FairRate | null} owner the FairRate it belongs to. A new one replaces this RouteRate */
  constructor (seenAt = -Infinity, owner = null) {
    this.owner = owner
    this.arrivals = 0.5 // decays. Not 0: V8 would treat it as a small integer, and discard compiled code at the first fraction
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
    this.allowance = 0 // level * brake * 2^24
    this.debt = perSecond * DEBT_SECONDS_AT_START // traces taken in excess of the rate. Negative: a credit
    this.paidAt = NaN
    this.lookedAt = -Infinity
    this.lookAt = -Infinity
  }

  /**
   * The tracestate of a new trace, or '' if it is not taken. A trace that is taken by chance gets a new string.
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

  /** Marks the route as active. Returns whether it had no requests for an hour. */
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

/** The share at which the routes together use up `budget`, if each route gets its arrivals but at most the share. Sorts the routes. */
function waterLevel (routes, budget) {
  routes.sort((a, b) => a.arrivals - b.arrivals)
  let rest = budget
  for (let i = 0; i < routes.length; i++) {
    const share = rest / (routes.length - i)
    if (routes[i].arrivals > share) return share
    rest -= routes[i].arrivals
  }
  // The budget covers all arrivals. Any single route may use the rest too.
  return routes.length === 0 ? budget : routes[routes.length - 1].arrivals + rest
}

module.exports = { samplerOf, applyDecision, RateLimit, DROP, RECORD_AND_SAMPLE, FairRate, RouteRate }
