'use strict'

// The way to SpanProcessors of the OpenTelemetry SDK, 2.x and 3.x: our spans are ReadableSpans and are
// handed over as they are. What a processor throws, or never finishes, is logged and harms nobody: neither
// the request nor the other processors.

const { SAMPLED } = require('../../context/trace-context')
const { settleWithin } = require('../deadline')

// Two applications may be given the same processor: the last one to close shuts it down.
const users = new WeakMap()

class ProcessorSink {
  #processors
  #stats
  #report
  #closeTimeoutMs
  #suppress

  /**
   * @param {SpanProcessor[]} processors
   * @param {{ stats, report, closeTimeoutMs, suppress: (fn) => unknown }} options suppress runs a function
   *   where nothing is traced: an exporter's own calls are no children of the request whose span it sends
   */
  constructor (processors, { stats, report, closeTimeoutMs, suppress = (fn) => fn() }) {
    this.#processors = processors
    this.#stats = stats
    this.#report = report
    this.#closeTimeoutMs = closeTimeoutMs
    this.#suppress = suppress
    for (const processor of processors) users.set(processor, (users.get(processor) ?? 0) + 1)
  }

  started (span, context) {
    for (const processor of this.#processors) this.#call(processor, 'onStart', span, context)
  }

  ending (span) {
    for (const processor of this.#processors) {
      if (typeof processor.onEnding === 'function') this.#call(processor, 'onEnding', span)
    }
  }

  accept (span) {
    this.#stats.handedOver++
    const { flags } = span
    // Batch and simple processors pass over what is not sampled, and a span that `keep` has kept is not.
    // For this call it is; outward, where late work of its request may go on, it stays what it was.
    span.flags = flags | SAMPLED
    this.#end(span)
    span.flags = flags
  }

  /** Recorded but neither sampled nor kept. Processors see it end, as in the SDK; exporters are not given it. */
  discarded (span) {
    this.#end(span)
  }

  async flush ({ timeoutMs = this.#closeTimeoutMs } = {}) {
    await this.#settleAll(this.#processors, 'forceFlush', timeoutMs)
  }

  async close () {
    const ours = this.#processors.filter((processor) => {
      const left = (users.get(processor) ?? 1) - 1
      users.set(processor, left)
      return left <= 0
    })
    const shared = this.#processors.filter((processor) => !ours.includes(processor))
    await Promise.all([
      this.#settleAll(ours, 'shutdown', this.#closeTimeoutMs),
      this.#settleAll(shared, 'forceFlush', this.#closeTimeoutMs)
    ])
  }

  #end (span) {
    this.#suppress(() => {
      for (const processor of this.#processors) this.#call(processor, 'onEnd', span)
    })
  }

  #call (processor, method, span, context) {
    try {
      const result = processor[method](span, context)
      // An async method: its failure is nobody else's either.
      if (result !== null && typeof result === 'object' && typeof result.then === 'function') result.then(undefined, (error) => this.#failed(method, error))
    } catch (error) {
      this.#failed(method, error)
    }
  }

  async #settleAll (processors, method, timeoutMs) {
    await Promise.all(processors.map(async (processor) => {
      if (typeof processor[method] !== 'function') return
      const error = await settleWithin(() => this.#suppress(() => processor[method]()), timeoutMs)
      if (error !== undefined) this.#failed(method, error)
    }))
  }

  #failed (method, error) {
    this.#report.once('LT_WARN_PROCESSOR', `a span processor failed in ${method}: ${error?.message}`)
  }
}

module.exports = { ProcessorSink }
