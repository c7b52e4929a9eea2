'use strict'

// Several collectors, in the order in which they are preferred: `exporter.urls`. One takes all; the others are for when it does not.
//
//   fails          the next one is sent the same bytes at once, and is the one from then on
//   all fail       that is one failed attempt, and all are asked again at the next
//   Retry-After    that one is left alone until then
//   back           a preferred one is sent something 30 s later, then 60 s, up to five minutes: what it does not take goes on as before

const { monotonicNow } = require('../../runtime/timers')
const { failureOf } = require('../log')
const { OtlpHttp } = require('./otlp-http')

const BACK_MIN_MS = 30_000
const BACK_MAX_MS = 300_000

const TURNED_AWAY = new Set([401, 403, 404, 405]) // no answer to what was sent: another server may take it

/**
 * What sends to an exporter's server, or to the first of its servers that accepts: an OtlpHttp, or what has its methods.
 * @param {object} exporter settings, see lib/config/exporter.js
 * @param {(fn: () => any) => any} suppress
 * @param {Report} report
 */
function connectTo (exporter, suppress, report) {
  const servers = [exporter, ...exporter.others]
  if (servers.length === 1) return new OtlpHttp(exporter, suppress)
  const order = new Order(servers.map(({ printableUrl }) => printableUrl), report)
  return new Failover(servers.map((server) => new OtlpHttp(server, suppress)), order)
}

/** Which of the servers is asked when. All signals share it. */
class Order {
  #names
  #report
  #active = 0
  #backAt = 0
  #backWaitMs = BACK_MIN_MS
  #askedUntil

  constructor (names, report) {
    this.#names = names
    this.#report = report
    this.#askedUntil = names.map(() => -Infinity)
  }

  /** The indexes of those to ask, in turn. */
  at (now) {
    const all = this.#names.map((_, index) => index)
    const ready = all.filter((index) => this.#askedUntil[index] <= now)
    if (ready.length === 0) return [this.#active]
    if (now < this.#backAt) ready.sort((a, b) => Number(b === this.#active) - Number(a === this.#active))
    else if (this.#active > 0) this.#waitToGoBack(now)
    return ready
  }

  failed (index, { retryAfterMs }, now) {
    if (retryAfterMs >= 0) this.#askedUntil[index] = now + retryAfterMs
  }

  /** How long all have asked to be left alone; -1 where one has not. */
  askedMs (now) {
    const ms = Math.min(...this.#askedUntil) - now
    return ms > 0 ? ms : -1
  }

  /** @param {Outcome | null} failure of the one that was asked before it */
  answered (index, failure, now) {
    const before = this.#active
    this.#active = index
    if (index === 0) {
      this.#backAt = 0
      this.#backWaitMs = BACK_MIN_MS
      this.#report.recovered('failover', `${this.#names[0]} accepts what is sent again`)
    } else if (index !== before) {
      this.#waitToGoBack(now)
      if (failure !== null) this.#report.loss('failover', `${this.#names[before]} does not accept what is sent (${failureOf(failure)}): it goes to ${this.#names[index]}`)
    }
  }

  #waitToGoBack (now) {
    this.#backAt = now + this.#backWaitMs
    this.#backWaitMs = Math.min(this.#backWaitMs * 2, BACK_MAX_MS)
  }
}

class Failover {
  #ends
  #order

  constructor (ends, order) {
    this.#ends = ends
    this.#order = order
  }

  share (exporter) {
    return new Failover([exporter, ...exporter.others].map((server, index) => this.#ends[index].share(server)), this.#order)
  }

  post (parts, encoding, done) { this.#postTo(this.#order.at(monotonicNow()), null, parts, encoding, done) }

  #postTo (indexes, before, parts, encoding, done) {
    const [index, ...others] = indexes
    this.#ends[index].post(parts, encoding, (outcome) => {
      const now = monotonicNow()
      if (before !== null) addTo(outcome, before)
      if (outcome.error?.code === 'ABORTED') return done(outcome)
      if (isAnswered(outcome)) this.#order.answered(index, before, now)
      else {
        this.#order.failed(index, outcome, now)
        if (others.length > 0) return this.#postTo(others, outcome, parts, encoding, done)
        outcome.retryAfterMs = this.#order.askedMs(now)
      }
      done(outcome)
    })
  }

  hold (isHeld, wasFrozen) { for (const end of this.#ends) end.hold(isHeld, wasFrozen) }
  abort () { for (const end of this.#ends) end.abort() }
  close () { for (const end of this.#ends) end.close() }
}

/** Whether it is for this server to say what becomes of the spans. */
function isAnswered ({ disposition, status }) {
  return disposition !== 'retry' && disposition !== 'misdirected' && !TURNED_AWAY.has(status)
}

/** What the attempt at another server before it means for the whole. */
function addTo (outcome, before) {
  if (before.disposition === 'retry' && !isAnswered(outcome)) outcome.disposition = 'retry' // that one may take it later
  outcome.wasResent ||= before.wasResent || !before.isUnreachable
  outcome.isUnreachable &&= before.isUnreachable
  outcome.isUploaded &&= before.isUploaded // else its socket may still read the bytes
}

module.exports = { connectTo, Order }
