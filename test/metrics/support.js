'use strict'

// A registry like an application's, and its export as a collector decodes it.

const { Scope } = require('../../lib/span/recording-span')
const { MetricRegistry } = require('../../lib/features/metrics/registry')
const { MeterProvider } = require('../../lib/features/metrics/instruments')
const { MetricEncoder } = require('../../lib/features/metrics/encoder')
const { ExportRequestPrefix } = require('../../lib/otlp/request')
const clock = require('../../lib/runtime/timers')
const { Report } = require('../../lib/runtime/report')
const { decodeMetrics } = require('../support/metric-decode')

const scope = new Scope('light-trace', '1.2.3')

function newReport () {
  const warnings = []
  return {
    warnings,
    warn: (code, message) => warnings.push(`${code} ${message}`),
    failed: Report.prototype.failed,
    attempt: Report.prototype.attempt
  }
}

function newRegistry (settings, report = newReport(), context = () => undefined) {
  return new MetricRegistry({ temporality: 'cumulative', histograms: 'explicit', exemplars: 'trace_based', attributeLengthMax: 1024, ...settings }, report, context)
}

function newMeter (registry, name = 'shop', version) {
  const provider = new MeterProvider(() => registry)
  registry.addProvider(provider)
  return provider.getMeter(name, version)
}

/** Returns all batches of one collection, decoded. */
function encodeAll (registry, { encoder = new MetricEncoder(), nowMs = clock.now(), sinceMs = -1 } = {}) {
  clock.anchor()
  const prefix = new ExportRequestPrefix({ attributes: { 'service.name': 'test' } })
  const batches = [...encoder.encode(registry.scopes(), nowMs, sinceMs)].filter((batch) => batch !== null)
  const metrics = batches.flatMap((batch) => decodeMetrics(Buffer.concat([prefix.head(batch.body.length), batch.body])))
  return {
    batches,
    metrics,
    named: (name) => metrics.find((metric) => metric.name === name),
    delivered: () => batches.forEach((batch) => batch.delivered()),
    failed: () => batches.forEach((batch) => batch.failed())
  }
}

module.exports = { newRegistry, newReport, encodeAll, newMeter, scope }
