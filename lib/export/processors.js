'use strict'

// The way to SpanProcessors of the OpenTelemetry SDK, 2.x and 3.x: our spans are ReadableSpans and are
// handed over as they are. What a processor throws is counted and told, and harms nobody.

class ProcessorSink {
  #processors
  #stats
  #report

  constructor (processors, stats, report) {
    this.#processors = processors
    this.#stats = stats
    this.#report = report
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
    for (const processor of this.#processors) this.#call(processor, 'onEnd', span)
  }

  async flush () {
    await Promise.allSettled(this.#processors.map((processor) => this.#settle(processor, 'forceFlush')))
  }

  async close () {
    await Promise.allSettled(this.#processors.map((processor) => this.#settle(processor, 'shutdown')))
  }

  #call (processor, method, ...args) {
    try {
      processor[method](...args)
    } catch (error) {
      this.#report.once('LT_WARN_PROCESSOR', `a span processor threw in ${method}: ${error?.message}`)
    }
  }

  async #settle (processor, method) {
    if (typeof processor[method] === 'function') await processor[method]()
  }
}

module.exports = { ProcessorSink }
