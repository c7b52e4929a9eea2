'use strict'

// http.server.request.duration of every request, sampled or not, from what its span (or the twin of one) knows
// when it has ended. https://opentelemetry.io/docs/specs/semconv/http/http-metrics/

const { HTTP_DURATION } = require('./buckets')
const { keepExemplar } = require('./exemplar')
const { RouteSeries } = require('./route-series')

const DURATION = { name: 'http.server.request.duration', unit: 's', description: 'Duration of HTTP server requests.' }

const SWITCHING_PROTOCOLS = 101 // a WebSocket's hours are no latency

class ServerMetrics {
  /**
   * @param {MetricRegistry} registry
   * @param {Scope} scope
   * @param {{ buckets?: number[] }} options
   */
  constructor (registry, scope, { buckets, attributes }) {
    this.duration = registry.metric(scope, 'histogram', { ...DURATION, bounds: buckets ?? HTTP_DURATION })
    this.routes = new RouteSeries(this.duration, attributes !== null)
    this.exemplarMask = registry.exemplarFlags.mask
    this.exemplarSet = registry.exemplarFlags.set
  }

  /** @param {ServerSpan | MeasuredSpan} span that has ended */
  // HOT, once per request where metrics are on. Budget: 0 objects, 0 strings. Proof: bench/micro/metrics.bench.js
  ended (span) {
    if (span.httpStatus === SWITCHING_PROTOCOLS || !span.route.isMeasured) return
    this.record(this.routes.seriesOf(this.routes.find(span), span), span)
  }

  // HOT, once per request where metrics are on.
  record (series, span) {
    const seconds = (span.endedAt - span.start) / 1000
    const slot = series.record(seconds)
    if (((span.flags | this.exemplarSet) & this.exemplarMask) !== 0) keepExemplar(series, slot, seconds, span.endedAt, span)
  }
}

module.exports = { ServerMetrics, SWITCHING_PROTOCOLS }
