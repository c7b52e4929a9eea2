'use strict'

// The stock SDK's meter as its users write it: one histogram of the durations of requests, with the attributes of OpenTelemetry's
// conventions, exported as OTLP every minute. In a process that keeps a record of nextTick, as light-trace's do.

const assert = require('node:assert')
const bareKeptTick = require('./bare-kept-tick')

const SECONDS_BOUNDARIES = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

module.exports = (options) => {
  const { MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics')
  const { OTLPMetricExporter } = require('@opentelemetry/exporter-metrics-otlp-proto')
  const reader = new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() })
  const provider = new MeterProvider({ readers: [reader] })
  const durations = provider.getMeter('bench').createHistogram('http.server.request.duration', { unit: 's', advice: { explicitBucketBoundaries: SECONDS_BOUNDARIES } })
  return {
    ...bareKeptTick(options),
    async register (app) {
      app.addHook('onResponse', (request, reply, done) => {
        durations.record(reply.elapsedTime / 1000, {
          'http.request.method': request.method,
          'http.route': request.routeOptions.url,
          'http.response.status_code': reply.statusCode,
          'url.scheme': request.protocol,
          'network.protocol.version': request.raw.httpVersion
        })
        done()
      })
    },
    // Not by inject: its requests are of classes that V8 would have to know as well.
    async flush () {
      const { resourceMetrics } = await reader.collect()
      assert.ok(resourceMetrics.scopeMetrics[0].metrics[0].dataPoints[0].value.count > 0)
    }
  }
}
