'use strict'

// http.server.request.duration of every request, sampled or not, from what its span (or the twin of one) knows
// when it has ended. https://opentelemetry.io/docs/specs/semconv/http/http-metrics/

const { HTTP_DURATION } = require('./buckets')
const { keepExemplar } = require('./exemplar')
const { RouteSeries } = require('./route-series')

const DURATION = { name: 'http.server.request.duration', unit: 's', description: 'Duration of HTTP server requests.' }

class ServerMetrics {
  /**
   * @param {MetricRegistry} registry
   * @param {Scope} scope
   * @param {{ buckets?: number[] }} options
   */
  constructor (registry, scope, { buckets }) {
    this.duration = registry.metric(scope, 'histogram', { ...DURATION, bounds: buckets ?? HTTP_DURATION })
    this.routes = new RouteSeries(this.duration)
    this.exemplarMask = registry.exemplarFlags.mask
    this.exemplarSet = registry.exemplarFlags.set
  }

  /** @param {ServerSpan | MeasuredSpan} span that has ended */
  // HOT, once per request where metrics are on. Budget: 0 objects, 0 strings. Proof: bench/micro/metrics.bench.js
  ended (span) {
    const { routes } = this
    const series = routes.seriesOf(routes.find(span), span)
    if (series !== null) this.record(series, span)
  }

  // HOT, once per request where metrics are on.
  record (series, span) {
    const { endedAt } = span
    const seconds = (endedAt - span.start) / 1000
    const slot = series.record(seconds)
    if (((span.flags | this.exemplarSet) & this.exemplarMask) !== 0) keepExemplar(series, slot, seconds, endedAt, span)
  }
}

module.exports = { ServerMetrics }
