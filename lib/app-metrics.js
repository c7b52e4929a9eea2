'use strict'

// The metrics of one application: what is recorded, and where it goes. Like export-mode.js it composes; it is loaded
// only where metrics are on.
//
//   requests, calls ─┐                     ┌─ OTLP, every minute
//   runtime, stats() ├─► MetricRegistry ───┼─ console, lines of OTLP JSON
//   the API's meters ┘         or          ├─ the path that Prometheus scrapes
//                      a MeterProvider     └─ app.lightTrace.metrics(), light-trace/testing
//                      of somebody else

const { Readable } = require('node:stream')
const { AdoptedServerSpan } = require('./span/sdk-spans')
const { MeasuringFastStarter, MeasuringStarter } = require('./span/measuring-starter')
const { FastStarter } = require('./span/span-starter')
const { setImmediate } = require('./runtime/timers')
const { MetricRegistry } = require('./metrics/registry')
const { MeterProvider } = require('./metrics/meter-provider')
const { ServerMetrics } = require('./metrics/server-metrics')
const { CallMetrics } = require('./metrics/call-metrics')
const { exposition, negotiate, OPEN_METRICS } = require('./metrics/prometheus')
const { snapshot } = require('./metrics/snapshot')
const { foreignMeterProvider } = require('./otel/api-globals')
const { FinishedResponses } = require('./fastify/finished')

class AppMetrics {
  #tracer
  #ownProvider
  #foreign = null
  #readers = []
  #releases = []
  #isOpen = false
  #isClosed = false
  #stats = { points: 0, exportsOk: 0, exportsFailed: 0, delivered: 0, rejected: 0, dropped: 0, lastError: null }

  constructor (tracer) {
    const { settings, report } = tracer
    this.#tracer = tracer
    this.settings = settings.metrics
    this.server = null // what records requests, once the application is open
    this.calls = null // the same for what they call
    this.finished = new FinishedResponses() // what tells of the ends of requests without a span
    this.#releases.push(() => this.finished.close())
    this.registry = new MetricRegistry({
      temporality: this.settings.exporter === null && !this.settings.lines ? 'cumulative' : this.settings.temporality,
      histograms: this.settings.histograms,
      exemplars: this.settings.exemplars,
      attributeLengthMax: settings.limits.attributeValueLength
    }, report, () => tracer.contextManager.active())
    this.#ownProvider = new MeterProvider(() => this.#isClosed ? null : this.registry)
    this.registry.addProvider(this.#ownProvider)
  }

  /** For those who have `app` and not the API. */
  get meterProvider () {
    return foreignMeterProvider() ?? this.#ownProvider
  }

  /** Decides where measurements go, once: in onReady, or at the first span before it. */
  open () {
    if (this.#isOpen) return
    this.#isOpen = true
    const { report, scope } = this.#tracer
    this.#foreign = foreignMeterProvider()
    const registry = this.#foreign === null ? this.registry : this.#foreignRegistry()
    this.server = this.#serverMetrics(registry, scope)
    this.calls = new CallMetrics(registry, scope)
    const meter = this.meterProvider.getMeter(scope.name, scope.version)
    if (this.settings.runtime) this.#releases.push(require('./metrics/runtime-metrics').openRuntimeMetrics(meter))
    if (this.settings.self) require('./metrics/self-metrics').openSelfMetrics(meter, () => this.#tracer.snapshot())
    if (this.#foreign === null) this.#openReaders()
    else report.info(`metrics are recorded through the registered ${this.#foreign.constructor?.name ?? 'MeterProvider'}`)
  }

  #foreignRegistry () {
    const { ForeignRegistry } = require('./metrics/foreign-registry')
    return new ForeignRegistry(this.#foreign)
  }

  #serverMetrics (registry, scope) {
    if (!this.isDetailed) return new ServerMetrics(registry, scope, this.settings)
    const { DetailedServerMetrics } = require('./metrics/detailed-server-metrics')
    return new DetailedServerMetrics(registry, scope, this.settings, this.#tracer.report)
  }

  /** Whether more than a request's duration is asked for: that is told by Fastify's reply when the response closes. */
  get isDetailed () {
    const { attributes, streams, activeRequests, bodySizes } = this.settings
    return attributes !== null || !streams || activeRequests || bodySizes
  }

  /** Requests that get no span of ours get a record of their own. */
  measuring (starter) {
    if (starter instanceof FastStarter) return new MeasuringFastStarter(this.#tracer)
    // instrumentation-http counts its requests itself where it finds a MeterProvider.
    return new MeasuringStarter(starter, (span) => this.#foreign !== null && span instanceof AdoptedServerSpan)
  }

  // ---- where they go

  #openReaders () {
    const { settings } = this.#tracer
    const collectors = (settings.spanProcessors ?? []).filter((processor) => typeof processor.useMetrics === 'function')
    for (const collector of collectors) collector.useMetrics(() => this.snapshot())
    if (this.settings.exporter !== null && collectors.length === 0) this.#read(this.#otlp())
    if (this.settings.lines && collectors.length === 0) this.#read(this.#lines())
    if (this.settings.console) this.#read(this.#console())
    if (this.settings.prometheus !== null) this.#servePrometheus()
  }

  #read (target) {
    const { MetricReader } = require('./export/metric-reader')
    const { output, settings } = this.#tracer
    const reader = new MetricReader({
      registry: this.registry,
      target,
      intervalMs: this.settings.intervalMs,
      closeTimeoutMs: settings.closeTimeoutMs,
      suppress: output.suppress
    })
    this.#readers.push(reader)
    reader.start()
  }

  #otlp () {
    const { MetricSender } = require('./export/metric-sender')
    const { MetricLog } = require('./export/metric-log')
    const { OtlpHttp } = require('./export/transport/otlp-http')
    const { ExportRequestPrefix } = require('./otlp/export-request-prefix')
    const { output, settings, report } = this.#tracer
    const { exporter } = this.settings
    return new MetricSender({
      registry: this.registry,
      connect: () => output.shareConnection(exporter) ?? new OtlpHttp(exporter, output.suppress),
      prefix: new ExportRequestPrefix(settings.resource),
      isGzip: exporter.compression === 'gzip',
      log: new MetricLog(report, exporter.url),
      stats: this.#stats
    })
  }

  #lines () {
    const { MetricLines } = require('./export/metric-lines')
    const { toStdout } = require('./export/sinks/console')
    return new MetricLines({
      registry: this.registry,
      resource: this.#tracer.settings.resource,
      takesDeltas: this.settings.exporter === null, // they can be taken once
      write: toStdout(),
      stats: this.#stats
    })
  }

  #console () {
    const { ConsoleMetrics } = require('./export/metric-console')
    const { toStdout } = require('./export/sinks/console')
    return new ConsoleMetrics(this.registry, toStdout())
  }

  #servePrometheus () {
    const { startPrometheusServer } = require('./export/prometheus-server')
    const { output, report } = this.#tracer
    this.#releases.push(output.suppress(() => startPrometheusServer(this.settings.prometheus, this, report)))
  }

  // ---- for those who ask

  /**
   * The route's handler for Prometheus: `{ type, body }`, the body a stream that comes in pieces.
   * @param {string | undefined} accept the request's Accept header
   */
  async scrape (accept) {
    const type = negotiate(accept)
    await this.registry.observe()
    // Not in object mode: what nobody has read yet is no more than a piece or two.
    return { type, body: Readable.from(this.#pieces(type === OPEN_METRICS), { objectMode: false }) }
  }

  /** All of it as text. */
  async text ({ openMetrics = false } = {}) {
    await this.registry.observe()
    let text = ''
    for await (const piece of this.#pieces(openMetrics)) text += piece
    return text
  }

  async * #pieces (isOpenMetrics) {
    const { settings, scope } = this.#tracer
    for (const piece of exposition(this.registry.scopes(), settings.resource.attributes, { isOpenMetrics, ownScope: scope.name })) {
      yield piece
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** All of it as plain objects. */
  async snapshot () {
    await this.registry.observe()
    return snapshot(this.registry.scopes())
  }

  /** What became of the exports, for `app.lightTrace.stats()`. */
  stats () {
    const { exportsOk, exportsFailed, delivered, rejected, dropped, lastError } = this.#stats
    return {
      series: this.registry.seriesCount,
      overflowed: [...this.registry.overflowed],
      points: { delivered, rejected, dropped },
      exports: { ok: exportsOk, failed: exportsFailed },
      lastError
    }
  }

  async flush (options) {
    await Promise.all(this.#readers.map((reader) => reader.flush(options)))
  }

  async close () {
    await Promise.all(this.#readers.map((reader) => reader.close()))
    this.#isClosed = true
    for (const release of this.#releases) release()
  }
}

module.exports = { AppMetrics }
