'use strict'

// The way of SDK mode: spans are made by somebody else's TracerProvider, with its sampler, processors,
// limits, resource and ids. What is left for us is to count, and to ask it for a flush.

const { settleWithin } = require('../deadline')

class ProviderSink {
  #provider
  #stats
  #report
  #closeTimeoutMs

  constructor (provider, { stats, report, closeTimeoutMs }) {
    this.#provider = provider
    this.#stats = stats
    this.#report = report
    this.#closeTimeoutMs = closeTimeoutMs
  }

  accept () {
    this.#stats.handedOver++
  }

  async flush ({ timeoutMs = this.#closeTimeoutMs } = {}) {
    const { forceFlush } = this.#provider
    if (typeof forceFlush !== 'function') return
    // 3.x takes a deadline of its own, in its own words; 2.x ignores what it is given.
    const error = await settleWithin(() => forceFlush.call(this.#provider, { timeoutMillis: timeoutMs }), timeoutMs)
    if (error !== undefined) this.#report.once('LT_WARN_PROVIDER', `the tracer provider failed in forceFlush: ${error?.message}`)
  }

  /** The provider is not ours to shut down: others use it. */
  close () {
    return this.flush()
  }
}

module.exports = { ProviderSink }
