'use strict'

// The sinks for the OpenTelemetry SDK: for its span processors, and for a tracer provider.

const { SAMPLED } = require('../../context/trace-context.js')
const { settleWithin } = require('../../export/exporter.js')

// The number of applications that use a processor: the last one that closes shuts it down.
const users = new WeakMap()

/**
 * Passes spans to SpanProcessors of the OpenTelemetry SDK, 2.x and 3.x, without conversion: they are ReadableSpans. A processor that
 * throws or never finishes is logged. It affects neither the request nor the other processors.
 */
class ProcessorSink {
  #processors
  #options

  /**
   * @param {{ stats: object, report: Report, closeTimeoutMs: number, suppress: (fn: () => unknown) => unknown }} options
   *   suppress: see tracer.js; an exporter's own calls must not become children of the request whose span it sends
   */
  constructor (processors, options) {
    this.#processors = processors
    this.#options = options
    for (const processor of processors) users.set(processor, (users.get(processor) ?? 0) + 1)
  }

  started (span, context) { this.#callAll('onStart', span, context) }
  ending (span) { this.#callAll('onEnding', span) }

  accept (span) {
    this.#options.stats.handedOver++
    this.handOver(span)
  }

  handOver (span) {
    const { flags } = span
    // Processors skip unsampled spans, and one that `keep` has kept may be unsampled. The flag is set for this call only, because later
    // work of the span reads its flags.
    span.flags = flags | SAMPLED
    this.#end(span)
    span.flags = flags
  }

  // The span was recorded, but neither sampled nor kept. Processors see its end, but do not export it.
  discarded (span) { this.#end(span) }

  async flush ({ timeoutMs = this.#options.closeTimeoutMs } = {}) {
    await this.#settleAll(() => 'forceFlush', timeoutMs)
  }

  async close () {
    for (const processor of this.#processors) users.set(processor, users.get(processor) - 1)
    await this.#settleAll((processor) => users.get(processor) > 0 ? 'forceFlush' : 'shutdown', this.#options.closeTimeoutMs)
  }

  #end (span) { this.#options.suppress(() => this.#callAll('onEnd', span)) }

  #callAll (method, span, context = undefined) {
    for (const processor of this.#processors) {
      try {
        const result = typeof processor[method] === 'function' ? processor[method](span, context) : undefined
        if (typeof result?.then === 'function') result.then(undefined, (error) => this.#failed(method, error))
      } catch (error) {
        this.#failed(method, error)
      }
    }
  }

  async #settleAll (methodOf, timeoutMs) {
    await Promise.all([...new Set(this.#processors)].map(async (processor) => {
      const method = methodOf(processor)
      if (typeof processor[method] !== 'function') return
      const error = await settleWithin(() => this.#options.suppress(() => processor[method]()), timeoutMs)
      if (error !== undefined) this.#failed(method, error)
    }))
  }

  #failed (method, error) {
    this.#options.report.failed('LT_WARN_PROCESSOR', `a span processor failed in ${method}`, error)
  }
}

/** Passes spans to processors, and then to the sink of an exporter. Only that sink counts them. */
class BesideSink extends ProcessorSink {
  #sink
  #sender

  /** @param {{ flush: Function, close: Function }} sender sends the spans of `sink` */
  constructor (sink, sender, processors, options) {
    super(processors, options)
    this.#sink = sink
    this.#sender = sender
  }

  started (span, context) {
    super.started(span, context)
    this.#sink.started?.(span)
  }

  accept (span) {
    this.handOver(span)
    this.#sink.accept(span)
  }

  discarded (span) {
    super.discarded(span)
    this.#sink.discarded?.(span)
  }

  async flush (options) { await Promise.all([super.flush(options), this.#sender.flush(options)]) }
  async close () { await Promise.all([super.close(), this.#sender.close()]) }
}

/** Counts the spans of SDK mode, which the SDK's provider creates and exports, and flushes the provider. */
function providerSink (provider, { stats, report, closeTimeoutMs }) {
  async function flush ({ timeoutMs = closeTimeoutMs } = {}) {
    if (typeof provider.forceFlush !== 'function') return
    // 3.x accepts a deadline under this name; 2.x ignores it.
    const error = await settleWithin(() => provider.forceFlush({ timeoutMillis: timeoutMs }), timeoutMs)
    if (error !== undefined) report.warn('LT_WARN_PROVIDER', `the tracer provider failed in forceFlush: ${error.message}`, 'forceFlush')
  }
  return {
    accept () { stats.handedOver++ },
    flush,
    close: () => flush() // the provider is not ours to shut down
  }
}

module.exports = { ProcessorSink, BesideSink, providerSink }
