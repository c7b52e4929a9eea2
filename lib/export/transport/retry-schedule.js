'use strict'

// When a collector that did not take spans is asked again. Pure: no clock, no timer, no socket.
//
// Two bounds pull: the return of a collector is noticed within a second of it, however long it was away and however
// full the buffer is, and a collector that is there and in trouble gets a few requests a second at most.
//
//   failure ──wait──► attempt         100 to 200 ms, then twice that, never more than WAIT_MAX_MS
//   failure ──fills──► attempt        sooner where spans come so fast that the buffer would turn over meanwhile
//   failure ──Retry-After──► attempt  neither sooner nor later

const { WAIT_MIN_MS } = require('./retry')

// With what an attempt and a timer take, a return is noticed within a second. Asking a machine that refuses costs some
// 150 µs: for an hour's outage that is 0.03 % of one core.
const WAIT_MAX_MS = 750
// Where somebody answers, or may, a sooner attempt waits this long all the same: he may be overloaded.
const WAIT_MIN_ANSWERED_MS = 250
// An attempt is brought forward each time this part of the buffer has been written anew. What is written counts, not what
// the buffer holds: a full one does not grow any more, and that is when it matters.
const PART_OF_BUFFER = 1 / 16

class RetrySchedule {
  #bytesPerAttempt
  #failures = 0
  #failedAt = 0
  #bytesWritten = 0
  #isAsked = false
  #floorMs = WAIT_MIN_MS

  /** @param {number} bufferBytes how much may wait */
  constructor (bufferBytes) {
    this.#bytesPerAttempt = bufferBytes * PART_OF_BUFFER
  }

  get hasFailed () {
    return this.#failures > 0
  }

  /** @param {number} bytesWritten since the app began, by the end of the last chunk */
  attempted (bytesWritten) {
    this.#bytesWritten = bytesWritten
  }

  delivered () {
    this.#failures = 0
  }

  /**
   * @param {Outcome} outcome
   * @param {number} now milliseconds on the monotonic clock
   * @param {number} random in [0, 1): half of each wait, so that a fleet which lost its collector does not come back in step
   * @returns {number} when the next attempt is due
   */
  failed ({ error, retryAfterMs }, now, random) {
    this.#failures++
    this.#failedAt = now
    this.#isAsked = retryAfterMs >= 0
    this.#floorMs = error !== null && error.code === 'ECONNREFUSED' ? WAIT_MIN_MS : WAIT_MIN_ANSWERED_MS
    return now + (this.#isAsked ? retryAfterMs : backoffMs(this.#failures, random))
  }

  /** When the next attempt is due at the latest, now that so much has been written; Infinity: as it was. */
  dueAt (bytesWritten) {
    if (this.#isAsked || bytesWritten - this.#bytesWritten < this.#bytesPerAttempt) return Infinity
    return this.#failedAt + this.#floorMs
  }

  /** Whether the collector has said when. */
  get isAsked () {
    return this.#isAsked
  }
}

/** `failures` counts from 1; `random` is in [0, 1). */
function backoffMs (failures, random) {
  const ceiling = Math.min(WAIT_MAX_MS, WAIT_MIN_MS * 2 ** Math.min(failures, 16))
  return ceiling / 2 + random * ceiling / 2
}

module.exports = { RetrySchedule, backoffMs, WAIT_MAX_MS, WAIT_MIN_ANSWERED_MS }
