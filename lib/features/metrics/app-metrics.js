'use strict'

// The metrics of one application: what is recorded, and where it is sent.
//
//   requests, calls -+                     +- OTLP, every minute
//   runtime, stats() +-> MetricRegistry ---+- standard output, as lines of OTLP JSON
//   the API's meters +         or          +- a path for Prometheus to scrape
//                    a registered          +- app.lightTrace.metrics(), light-trace/testing
//                    MeterProvider

const { Readable } = require('node:stream')
const { OtlpHttp } = require('../../export/http/otlp-http.js')
const { ExportLog } = require('../../export/log.js')
const { Stats } = require('../../export/pipeline.js')
const { toStdout } = require('../../export/stdout.js')
const { foreignMeterProvider } = require('../../otel/api-globals.js')
const { ExportRequestPrefix } = require('../../otlp/request.js')
const { processState } = require('../../runtime/process-state.js')
const { setImmediate } = require('../../runtime/timers.js')
const { toObject } = require('../../span/attributes.js')
const { RouteInfo } = require('../../span/http-info.js')
const { ServerSpan } = require('../../span/server-span.js')
const { CallMetrics } = require('./call-metrics.js')
const { MetricEncoder, MetricJson } = require('./encoder.js')
const { MeterProvider, foreignRegistry } = require('./instruments.js')
const { exposition, negotiate, OPEN_METRICS, startPrometheusServer } = require('./prometheus.js')
const { MetricReader } = require('./reader.js')
const { MetricRegistry } = require('./registry.js')
const { openRuntimeMetrics, openSelfMetrics } = require('./runtime-metrics.js')
const { RequestRecord, ServerMetrics } = require('./server-metrics.js')

const PIECE_LENGTH = 32 * 1024 // of the text for Prometheus: about sixteen series of histograms

/** The route of requests that another package measures. */
const NOT_MEASURED = new RouteInfo('GET', '', '')
NOT_MEASURED.isMeasured = false

class AppMetrics {
  /** @type {Tracer} */ #tracer
  #ownProvider
  #foreign = null
  #readers = []
  #releases = []
  #isServed = false // the route for Prometheus exists
  #isClosed = false
  #scrapeDropped = 0 // series that the last scrape left out
  #stats = new Stats()

  constructor (tracer) {
    const { settings, report, scope } = tracer
    this.#tracer = tracer
    tracer.observer = this
    this.settings = settings.metrics
    this.server = null // records requests, once the application is open
    this.calls = null // records outgoing calls, likewise
    const { exporter, lines, histograms, exemplars } = this.settings
    const temporality = exporter === null && !lines ? 'cumulative' : this.settings.temporality
    const attributeLengthMax = settings.limits.attributeValueLength
    const aggregation = { temporality, histograms, exemplars, attributeLengthMax, ownScope: scope.key, omit: tracer.omit }
    this.registry = new MetricRegistry(aggregation, report, () => tracer.contextManager.active())
    this.#ownProvider = new MeterProvider(() => this.#isClosed ? null : this.registry)
    this.registry.addProvider(this.#ownProvider)
  }

  /** The API's global MeterProvider. The API has no proxy for meters, so its instruments look up the open application when they record. */
  makeMeterFacade () {
    return new MeterProvider(() => processState.openApps.all().find(({ observer }) => observer)?.observer.registry ?? null)
  }

  /** The provider of `app.lightTrace`: the registered one, or else ours. */
  get meterProvider () { return foreignMeterProvider() ?? this.#ownProvider }

  /** Decides once where measurements go: in onReady, or earlier at the first span. */
  open () {
    const { report, scope } = this.#tracer
    this.#foreign = foreignMeterProvider()
    const registry = this.#foreign === null ? this.registry : foreignRegistry(this.#foreign, this.registry)
    this.server = new ServerMetrics(registry, scope, this.settings, report)
    this.calls = new CallMetrics(registry, scope)
    this.registry.attempt(() => { // the provider may belong to another package, and throw
      const meter = this.meterProvider.getMeter(scope.name, scope.version, { schemaUrl: scope.schemaUrl })
      if (this.settings.runtime) this.#releases.push(openRuntimeMetrics(meter))
      openSelfMetrics(meter, () => this.#tracer.snapshot())
    })
    if (this.#foreign === null) this.#openReaders()
    else report.info(`metrics are recorded through the registered ${this.#foreign.constructor?.name ?? 'MeterProvider'}`)
  }

  /** The record that ends with the response: the span itself if it is a ServerSpan. HOT, once per request where metrics are on. */
  recordOf (span, start, route, peer) {
    if (span instanceof ServerSpan) return span
    // With a registered MeterProvider, instrumentation-http measures its own requests.
    const isMeasured = this.#foreign === null || span.isAdopted !== true
    return new RequestRecord(span, start, isMeasured ? route : NOT_MEASURED, peer)
  }

  /** Adds the route that Prometheus scrapes, in the first scope. It is neither traced nor measured. */
  install (app) {
    const { path } = this.settings
    if (path === null || this.#isServed) return
    this.#isServed = true
    const config = { trace: { ignore: true, metrics: false } }
    // `hide`: API documentation does not list the route.
    app.get(path, { config, logLevel: 'warn', schema: { hide: true } }, async (request, reply) => {
      const { type, body } = await this.scrape(request.headers.accept)
      reply.type(type)
      return body
    })
  }

  // ---- where measurements go

  #openReaders () {
    const { settings, output, report } = this.#tracer
    const { exporter, lines, prometheus } = this.settings
    const collectors = (settings.spanProcessors ?? []).filter((processor) => typeof processor.useMetrics === 'function')
    for (const collector of collectors) collector.useMetrics(() => this.snapshot())
    const areSent = collectors.length === 0 || !settings.exporter.idle // collectors replace the export, unless an exporter is set in code
    if (exporter !== null && areSent) this.#export(this.#otlp(exporter))
    if (lines && areSent) this.#export(this.#lines())
    if (prometheus !== null) this.#releases.push(output.suppress(() => startPrometheusServer(prometheus, this, report)))
  }

  #export (options) {
    const { output: { suppress }, settings: { closeTimeoutMs }, report } = this.#tracer
    const { registry, settings: { intervalMs } } = this
    this.#readers.push(new MetricReader({ registry, report, stats: this.#stats, intervalMs, closeTimeoutMs, suppress, ...options }))
  }

  #otlp (exporter) {
    const { output, settings, report } = this.#tracer
    const optional = { code: 'LT_WARN_METRICS_ENDPOINT', off: "metrics: { exporter: 'none' }" }
    return {
      encoder: new MetricEncoder(),
      log: new ExportLog(report, this.#stats, exporter, 'metric point', optional),
      // A cloud function's response waits for spans and metrics, so each has its own connection and they are sent in parallel.
      connect: () => (this.#tracer.invocations === null ? output.shareConnection(exporter) : null) ?? new OtlpHttp(exporter, output.suppress),
      prefix: new ExportRequestPrefix(settings.resource)
    }
  }

  /** `metrics: { exporter: 'otlp/stdout' }`. Written lines count as delivered. */
  #lines () {
    const write = toStdout()
    const post = ([line], _encoding, done) => {
      write(line)
      done({ disposition: 'delivered', partialSuccess: null })
    }
    const takesDeltas = this.settings.exporter === null // only one exporter can take them
    const { settings: { resource }, report } = this.#tracer
    const log = new ExportLog(report, this.#stats, { url: 'file:///dev/stdout' })
    return { encoder: new MetricJson(resource, takesDeltas), log, connect: () => ({ post, hold () {}, abort () {}, close () {} }), prefix: null }
  }

  // ---- reading metrics

  /** The response to Prometheus for its Accept header: `{ type, body }`, where `body` is a stream. */
  async scrape (accept) {
    const type = negotiate(accept)
    // Not in object mode, so that at most one or two pieces are buffered.
    return { type, body: Readable.from(this.#pieces(type === OPEN_METRICS), { objectMode: false }) }
  }

  /** All metrics as text. */
  async text ({ openMetrics = false } = {}) {
    let text = ''
    for await (const piece of this.#pieces(openMetrics)) text += piece
    return text
  }

  async * #pieces (isOpenMetrics) {
    await this.registry.observe()
    const { settings: { resource }, scope, report } = this.#tracer
    let dropped = 0
    const onDropped = ({ name }, count) => {
      dropped += count
      report.warn('LT_WARN_METRIC_SCRAPE', `Prometheus: series of the metric '${name}' have the same name and labels as others and are left out. Rename the metric or its attributes`, name)
    }
    let piece = ''
    for (const text of exposition(this.registry.scopes(), resource.attributes, { isOpenMetrics, ownScope: scope.name, onDropped })) {
      piece += text
      if (piece.length < PIECE_LENGTH) continue
      yield piece
      piece = ''
      await new Promise((resolve) => setImmediate(resolve))
    }
    yield piece
    this.#scrapeDropped = dropped
  }

  /** All metrics as plain objects. */
  async snapshot () {
    await this.registry.observe()
    return snapshot(this.registry.scopes())
  }

  /** Counts series and exports for `app.lightTrace.stats()`. */
  stats () {
    const { seriesCount: series, overflowed } = this.registry
    const { spans: { delivered, rejected, dropped }, exports, lastError } = this.#stats.snapshot('', 0, 0, null)
    const points = { delivered, rejected, dropped: Object.values(dropped).reduce((sum, count) => sum + count, 0) }
    return { metrics: { series, overflowed: [...overflowed], scrapeDropped: this.#scrapeDropped, points, exports, lastError } }
  }

  async flush (options) { await Promise.all(this.#readers.map((reader) => reader.flush(options))) }

  async close () {
    await Promise.all(this.#readers.map((reader) => reader.close()))
    this.#isClosed = true
    for (const release of this.#releases) release()
  }
}

/** All metrics that have points, as plain objects with their values since the start. */
function snapshot (scopes) {
  const found = []
  for (const { scope, metrics } of scopes) {
    for (const metric of metrics) {
      const points = metric.list.map((series) => pointOf(metric, series)).filter((point) => point !== null)
      const { name, description, unit, kind, isMonotonic } = metric
      const from = { name: scope.name, version: scope.version ?? '' }
      if (points.length > 0) found.push({ name, description, unit, kind, isMonotonic, scope: from, points })
    }
  }
  return found
}

function pointOf (metric, series) {
  const { exemplars: slots, buckets = {}, ...state } = series.state()
  const kept = slots?.filter((exemplar) => exemplar !== null) ?? []
  const exemplars = kept.map(({ value, traceId, spanId }) => ({ value, traceId, spanId }))
  const point = { attributes: toObject(series.attributes), exemplars }
  if (!metric.kind.endsWith('istogram')) return { ...point, value: state.value }
  if (state.count === 0) return null
  const bounds = metric.bounds === null ? {} : { bounds: Array.from(metric.bounds.subarray(0, -1)) }
  return { ...point, ...state, ...buckets, ...bounds }
}

function attach (tracer) { return new AppMetrics(tracer) }

/** A MeterProvider whose instruments record nothing. */
function withoutMetrics () { return new MeterProvider(() => null) }

module.exports = { attach, withoutMetrics, AppMetrics, MeterProvider, snapshot }
