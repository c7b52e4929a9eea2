'use strict'

// What happened to every span, as plain counters. At every moment
//   ended = accepted + unsampled
//   accepted = handedOver + delivered + rejected + sum(dropped) + queued + inFlight
// Counters are doubles: at a million spans a second 2^53 is 285 years away.

class Stats {
  constructor () {
    this.started = 0
    this.unsampled = 0
    this.accepted = 0
    this.handedOver = 0
    this.delivered = 0
    this.rejected = 0
    // Spans in repeated attempts: only these can be in the collector twice.
    this.retried = 0
    // reason -> spans; without a prototype because `snapshot` hands its keys out.
    this.dropped = Object.create(null)
    this.exportsOk = 0
    this.exportsFailed = 0
    this.lastError = null
  }

  get ended () { return this.accepted + this.unsampled }

  drop (reason, spans) {
    this.dropped[reason] = (this.dropped[reason] ?? 0) + spans
  }

  /** A span that there would have been. */
  dropUnstarted (reason) {
    this.started++
    this.accepted++
    this.drop(reason, 1)
  }

  // The public shape of `app.lightTrace.stats()`; `buffer` is { bytes, maxBytes }.
  snapshot (mode, queued, inFlight, buffer) {
    const { started, ended, unsampled, accepted, handedOver, delivered, rejected, retried } = this
    return {
      mode,
      spans: {
        started,
        ended,
        unsampled,
        accepted,
        handedOver,
        delivered,
        rejected,
        dropped: { ...this.dropped },
        queued,
        inFlight,
        retried
      },
      buffer: { bytes: buffer.bytes, maxBytes: buffer.maxBytes },
      exports: { ok: this.exportsOk, failed: this.exportsFailed },
      lastError: this.lastError
    }
  }
}

module.exports = { Stats }
