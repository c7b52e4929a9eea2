'use strict'

// Several collectors, in the order in which they are preferred: `exporter.urls`. One takes all; the others are for when it does not.
//
//   fails          the next one is sent the same bytes at once, and is the one from then on
//   all fail       that is one failed attempt, and all are asked again at the next
//   Retry-After    that one is left alone until then
//   401, 404, ...  it does not take this signal: it is left alone with it for a while, others stay
//   back           a preferred one is sent something 30 s later, then 60 s, up to five minutes: what it does not take goes on as before
//   a close        or a flush waits for each but the last only so long that the last has time

const { setTimeout, clearTimeout, monotonicNow } = require('../../runtime/timers.js')
const { failureOf } = require('../log.js')
const { OtlpHttp } = require('./otlp-http.js')

const BACK_MIN_MS = 30_000
const BACK_MAX_MS = 300_000

const ABOUT_THE_BYTES = new Set([400, 413, 415]) // another server would say the same

/**
 * What sends to an exporter's server, or to the first of its servers that accepts: an OtlpHttp, or what has its methods.
 * @param {object} exporter settings, see lib/config/exporter.js
 * @param {(fn: () => any) => any} suppress
 * @param {Report} report
 * @param {number} closeTimeoutMs
 */
function connectTo (exporter, suppress, report, closeTimeoutMs) {
  const servers = [exporter, ...exporter.others]
  if (servers.length === 1) return new OtlpHttp(exporter, suppress)
  const order = new Order(servers.map(({ printableUrl }) => printableUrl), report)
  return new Failover(servers.map((server) => new OtlpHttp(server, suppress)), order, closeTimeoutMs / (servers.length + 1))
}

/** Which of the servers is asked when. All signals share it. */
class Order {
  #report
  #active = 0
  #backAt = 0
  #backWaitMs = BACK_MIN_MS
  #askedUntil

  /** @param {string[]} names their URLs, as they may be shown */
  constructor (names, report) {
    this.names = names
    this.#report = report
    this.#askedUntil = names.map(() => -Infinity)
  }

  /** The indexes of those to ask, in turn: all of them where each has asked for a pause, for then it is a flush or a close that asks. */
  at (now) {
    const all = this.names.map((_, index) => index)
    const ready = all.filter((index) => this.#askedUntil[index] <= now)
    if (ready.length === 0 || now < this.#backAt) return this.#activeFirst(ready.length === 0 ? all : ready)
    if (this.#active > 0) this.#waitToGoBack(now)
    return ready
  }

  #activeFirst (indexes) { return indexes.sort((a, b) => Number(b === this.#active) - Number(a === this.#active)) }

  failed (index, { retryAfterMs }, now) {
    if (retryAfterMs >= 0) this.#askedUntil[index] = now + retryAfterMs
  }

  /** How long all of these have asked to be left alone; -1 where one has not. */
  askedMs (now, indexes) {
    const ms = Math.min(...indexes.map((index) => this.#askedUntil[index])) - now
    return ms > 0 ? ms : -1
  }

  /** @param {Map<number, Outcome>} failures of those that were asked before it and could not take anything */
  delivered (index, failures, now) {
    const before = this.#active
    const failure = failures.get(before)
    if (index > before && failure === undefined && this.#askedUntil[before] <= now) return // it has turned away this signal alone
    this.#active = index
    if (index === 0) {
      this.#backAt = 0
      this.#backWaitMs = BACK_MIN_MS
      this.#report.recovered('failover', `${this.names[0]} accepts what is sent again`)
    } else if (index !== before) {
      this.#waitToGoBack(now)
      const why = failure === undefined ? 'it has asked for a pause' : failureOf(failure)
      this.#report.warn('LT_WARN_LOSS', `${this.names[before]} does not accept what is sent (${why}): it goes to ${this.names[index]}`, 'failover')
    }
  }

  #waitToGoBack (now) {
    this.#backAt = now + this.#backWaitMs
    this.#backWaitMs = Math.min(this.#backWaitMs * 2, BACK_MAX_MS)
  }
}

/** The way of one signal to them. One `post` is under way at a time, as with its users. */
class Failover {
  #ends
  #order
  #shareMs // of a deadline, for each but the last
  #awayUntil // when those that do not take this signal are asked for it again
  #isHeld = false
  #isAborted = false
  #current = null // { index, hasNext, isSkipped } of what is under way
  #timer = null

  constructor (ends, order, shareMs) {
    this.#ends = ends
    this.#order = order
    this.#shareMs = shareMs
    this.#awayUntil = ends.map(() => -Infinity)
  }

  share (exporter) {
    return new Failover([exporter, ...exporter.others].map((server, index) => this.#ends[index].share(server)), this.#order, this.#shareMs)
  }

  post (parts, encoding, done) {
    const now = monotonicNow()
    const indexes = this.#order.at(now)
    const taking = indexes.filter((index) => this.#awayUntil[index] <= now)
    this.#postTo(taking.length > 0 ? taking : indexes, { failures: new Map(), before: null }, parts, encoding, done)
  }

  #postTo (indexes, attempt, parts, encoding, done) {
    const [index, ...others] = indexes
    const current = this.#current = { index, hasNext: others.length > 0, isSkipped: false }
    if (this.#isHeld) this.#hurry()
    this.#ends[index].post(parts, encoding, (outcome) => {
      this.#stopHurrying()
      this.#current = null
      outcome.target = this.#order.names[index]
      if (this.#isAborted || (outcome.error?.code === 'ABORTED' && !current.isSkipped)) return done(outcome)
      const now = monotonicNow()
      const isFinal = this.#note(index, outcome, attempt, now)
      if (attempt.before !== null) addTo(outcome, attempt.before)
      if (!isFinal && others.length > 0) return this.#postTo(others, { ...attempt, before: outcome }, parts, encoding, done)
      if (!isFinal) this.#conclude(outcome, now)
      done(outcome)
    })
  }

  /** All have failed. Where one of them, or one that was not asked, takes this signal, it may take the bytes later. */
  #conclude (outcome, now) {
    const open = this.#awayUntil.flatMap((until, index) => until <= now ? [index] : [])
    if (open.length > 0) outcome.disposition = 'retry'
    if (outcome.disposition === 'retry') outcome.retryAfterMs = this.#order.askedMs(now, open)
  }

  /** Whether it is for this server to say what becomes of the bytes. */
  #note (index, outcome, { failures }, now) {
    const { disposition, status } = outcome
    if (disposition === 'delivered') {
      this.#awayUntil[index] = -Infinity
      this.#order.delivered(index, failures, now)
      return true
    }
    if (ABOUT_THE_BYTES.has(status)) return true
    if (disposition === 'retry') {
      failures.set(index, outcome)
      this.#order.failed(index, outcome, now)
    } else this.#awayUntil[index] = now + BACK_MAX_MS
    return false
  }

  #hurry () {
    if (this.#current === null || !this.#current.hasNext || this.#timer !== null) return
    const { index } = this.#current
    this.#timer = setTimeout(() => {
      this.#current.isSkipped = true
      this.#ends[index].abort()
    }, this.#shareMs)
    this.#timer.unref() // what is under way holds the process
  }

  #stopHurrying () {
    clearTimeout(this.#timer)
    this.#timer = null
  }

  hold (isHeld, wasFrozen) {
    this.#isHeld = isHeld
    for (const end of this.#ends) end.hold(isHeld, wasFrozen)
    if (isHeld) this.#hurry()
  }

  abort () {
    this.#isAborted = true
    for (const end of this.#ends) end.abort()
  }

  close () { for (const end of this.#ends) end.close() }
}

/** What the attempt at another server before it means for the whole. */
function addTo (outcome, before) {
  if (outcome.disposition !== 'delivered') outcome.isOverload ||= before.isOverload
  outcome.wasResent ||= before.wasResent || !before.isUnreachable
  outcome.isUnreachable &&= before.isUnreachable
  outcome.isUploaded &&= before.isUploaded // else its socket may still read the bytes
}

module.exports = { connectTo, Order }
