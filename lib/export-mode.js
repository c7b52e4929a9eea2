'use strict'

// How spans leave the process, decided once per tracer in the order of decision D6 (docs/decisions.md).

const { foreignProvider, foreignManager } = require('./otel/api-globals')
const asyncStorage = require('./context/async-storage')
const { SUPPRESSED } = require('./context/suppressed')

// The ways are required where they are taken: an app takes one, and starts faster without the others.

function exportMode ({ settings, report, stats }) {
  const { exporter, spanProcessors, tracerProvider, closeTimeoutMs } = settings

  if (settings.disabled) return nowhere('disabled', stats, 'OTEL_SDK_DISABLED')
  if (tracerProvider) return provided(tracerProvider, settings, report, stats, 'spans are made by the tracerProvider of the options')
  if (spanProcessors !== null) {
    const { ProcessorSink } = require('./export/sinks/processors')
    return new DelegatedOutput('processors', new ProcessorSink(spanProcessors, { stats, report, closeTimeoutMs, suppress }), `spans go to ${spanProcessors.length} spanProcessors`)
  }
  if (!exporter.explicit && tracerProvider !== false) {
    const global = foreignProvider()
    if (global !== null) return provided(global, settings, report, stats, `spans are made by the registered ${global.constructor?.name ?? 'tracer provider'}`)
  }
  switch (exporter.kind) {
    case 'otlp/stdout': {
      const { OtlpStdoutSink } = require('./export/sinks/otlp-stdout')
      return new DelegatedOutput('otlp/stdout', new OtlpStdoutSink(settings.resource, stats), 'spans go to stdout as OTLP JSON')
    }
    case 'console': {
      const { ConsoleSink } = require('./export/sinks/console')
      return new DelegatedOutput('console', new ConsoleSink(stats), 'spans go to stdout')
    }
    case 'none': return nowhere('none', stats, 'spans go nowhere')
    default: return new OtlpOutput(settings, stats, report)
  }
}

function nowhere (mode, stats, reason) {
  const { NoneSink } = require('./export/sinks/none')
  return new DelegatedOutput(mode, new NoneSink(stats), reason)
}

function provided (provider, { closeTimeoutMs }, report, stats, reason) {
  const { ProviderSink } = require('./export/sinks/provider')
  const { SdkSpans } = require('./span/sdk-spans')
  return new DelegatedOutput('sdk', new ProviderSink(provider, { stats, report, closeTimeoutMs }), reason, new SdkSpans(provider, report))
}

/** Runs `fn` outside of any request's context, with tracing off. */
function suppress (fn) {
  return asyncStorage.run(SUPPRESSED, suppressThere, undefined, fn)
}

/** Timers that are armed in a request keep its context, also in that of a context manager that is registered with the API. */
function suppressThere (fn) {
  const manager = foreignManager()
  return manager === undefined ? fn() : manager.with(SUPPRESSED, fn)
}

/** Our own encoder and exporter, loaded when the first span has ended: by then its request has been answered. */
class OtlpOutput {
  #exporter = null
  #encoder = null
  #isClosed = false
  #settings
  #stats
  #report

  constructor (settings, stats, report) {
    this.mode = 'native'
    this.reason = `spans go to ${settings.exporter.printableUrl}`
    this.sdkSpans = null
    this.sink = { accept: (span) => this.#acceptFirst(span) }
    // No function of the user's: spans that wait for a collector must not hold the application.
    const { exporter, buffer, batch, closeTimeoutMs, logLevel, resource } = settings
    this.#settings = { exporter, buffer, batch, closeTimeoutMs, logLevel, resource }
    this.#stats = stats
    this.#report = report
    this.suppress = suppress
  }

  /** Its files may not be readable just now, with no descriptor left: the next span asks again. */
  #acceptFirst (span) {
    const first = this.sink
    try {
      this.sink = this.#load()
    } catch (error) {
      this.#stats.drop('not_loaded', 1)
      this.#report.thrown(error, 'the exporter could not be loaded')
      return
    }
    // Where this is one of several places that spans go to, the pipeline's sink is another.
    if (span.pipeline.sink === first) span.pipeline.sink = this.sink
    this.sink.accept(span)
  }

  #load () {
    if (this.#encoder !== null) return this.#encoder
    const { ExportRequestPrefix } = require('./otlp/export-request-prefix')
    const { SpanEncoder } = require('./otlp/span-encoder')
    const { Exporter } = require('./export/exporter')
    const prefix = new ExportRequestPrefix(this.#settings.resource)
    this.#exporter = new Exporter({ settings: this.#settings, prefix, stats: this.#stats, report: this.#report, suppress })
    return (this.#encoder = new SpanEncoder(this.#exporter))
  }

  /** The connection for another path of the same server, or null where it is another one, or closed. */
  shareConnection (exporter) {
    if (this.#isClosed) return null
    this.#load()
    return this.#exporter.shareConnection(exporter)
  }

  get queued () { return this.#exporter === null ? 0 : this.#exporter.queued }
  get inFlight () { return this.#exporter === null ? 0 : this.#exporter.inFlight }
  get bufferBytes () { return this.#exporter === null ? 0 : this.#exporter.bufferBytes }
  async flush (options) { await this.#exporter?.flush(options) }

  async close () {
    this.#isClosed = true
    await this.#exporter?.close()
  }
}

/** Spans go to somebody else as objects; nothing waits here. */
class DelegatedOutput {
  constructor (mode, sink, reason, provided = null) {
    this.mode = mode
    this.sink = sink
    this.reason = reason
    this.sdkSpans = provided // who makes the spans, where that is not us
    this.queued = 0
    this.inFlight = 0
    this.bufferBytes = 0
    this.suppress = suppress
  }

  /** There is none. */
  shareConnection () { return null }

  flush (options) { return this.sink.flush(options) }
  close () { return this.sink.close() }
}

module.exports = { exportMode }
