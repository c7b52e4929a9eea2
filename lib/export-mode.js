'use strict'

// How spans leave the process, decided once per tracer in the order of decision D6 (docs/decisions.md).
// The sinks and the SDK's interop are required where they are chosen: most apps send to a collector and never load them.

const { foreignProvider, foreignManager } = require('./otel/api-globals')
const asyncStorage = require('./context/async-storage')
const { SUPPRESSED } = require('./context/request-context')
const { ExportRequestPrefix } = require('./otlp/request')
const { SpanEncoder } = require('./otlp/span-encoder')
const { Exporter } = require('./export/exporter')
const { counted } = require('./runtime/report')

function exportMode ({ settings, report, stats }) {
  const { exporter, spanProcessors, tracerProvider, closeTimeoutMs } = settings

  if (settings.disabled) return toNone('disabled', stats, 'OTEL_SDK_DISABLED')
  if (tracerProvider) return toProvider(tracerProvider, settings, report, stats, 'spans are made by the tracerProvider of the options')
  if (spanProcessors !== null) {
    const { ProcessorSink } = require('./export/sinks/delegated')
    const sink = new ProcessorSink(spanProcessors, { stats, report, closeTimeoutMs, suppress })
    return new ExportMode('processors', `spans go to ${counted(spanProcessors.length, 'span processor')}`, sink)
  }
  if (!exporter.explicit && tracerProvider !== false) {
    const global = foreignProvider()
    const name = global?.constructor?.name ?? 'tracer provider'
    if (global !== null) return toProvider(global, settings, report, stats, `spans are made by the registered ${name}`)
  }
  if (exporter.kind === 'otlp') return toCollector(settings, stats, report)
  if (exporter.kind === 'none') return toNone('none', stats, 'spans go nowhere')
  const { ConsoleSink, OtlpStdoutSink } = require('./export/sinks/console')
  if (exporter.kind === 'console') return new ExportMode('console', 'spans go to stdout', new ConsoleSink(stats))
  return new ExportMode('otlp/stdout', 'spans go to stdout as OTLP JSON', new OtlpStdoutSink(settings.resource, stats))
}

// Spans are made and counted, and go nowhere.
function toNone (mode, stats, reason) {
  const nothing = async () => {}
  return new ExportMode(mode, reason, { accept: () => stats.drop('exporter_none', 1), flush: nothing, close: nothing })
}

function toProvider (provider, { closeTimeoutMs }, report, stats, reason) {
  const { ProviderSink } = require('./export/sinks/delegated')
  const { SdkSpans } = require('./otel/sdk-interop')
  return new ExportMode('sdk', reason, new ProviderSink(provider, { stats, report, closeTimeoutMs }), null, new SdkSpans(provider, report))
}

function toCollector ({ exporter, buffer, batch, closeTimeoutMs, logLevel, resource }, stats, report) {
  // None of the user's functions: spans that wait for a collector must not keep the application in memory.
  const settings = { exporter, buffer, batch, closeTimeoutMs, logLevel }
  const otlp = new Exporter({ settings, prefix: new ExportRequestPrefix(resource), stats, report, suppress })
  return new ExportMode('native', `spans go to ${exporter.printableUrl}`, new SpanEncoder(otlp), otlp)
}

// Runs `fn` outside of any request's context, with tracing off.
function suppress (fn) {
  return asyncStorage.run(SUPPRESSED, suppressThere, undefined, fn)
}

// Suppresses also in a context manager that is registered with the API: timers keep the context in which they are armed.
function suppressThere (fn) {
  const manager = foreignManager()
  return manager === undefined ? fn() : manager.with(SUPPRESSED, fn)
}

/** The chosen way: a sink that takes ended spans, and behind it an exporter if they go to a collector. */
class ExportMode {
  #exporter

  constructor (mode, reason, sink, exporter = null, sdkSpans = null) {
    this.mode = mode
    this.reason = reason
    this.sink = sink
    this.#exporter = exporter
    this.sdkSpans = sdkSpans // what makes the spans if an SDK's provider does
    this.suppress = suppress
  }

  get queued () { return this.#exporter?.queued ?? 0 }
  get inFlight () { return this.#exporter?.inFlight ?? 0 }
  get bufferBytes () { return this.#exporter?.bufferBytes ?? 0 }

  /** What may be waiting in memory, shared with log records; undefined where nothing waits here. */
  get budget () { return this.#exporter?.budget }

  /** The connection for another path of the collector's server; null if there is none or it is another server. */
  shareConnection (exporter) { return this.#exporter?.shareConnection(exporter) ?? null }
  flush (options) { return (this.#exporter ?? this.sink).flush(options) }
  close () { return (this.#exporter ?? this.sink).close() }
}

module.exports = { exportMode }
