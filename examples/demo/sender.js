'use strict'

// Lets the demo send its spans as well as print them: wraps light-trace's exporter in a second span processor.
// Applications do not need this. They register the plugin, and spans go to the collector.

const { resolveOptions } = require('../../lib/config/options')
const { Report } = require('../../lib/runtime/report')
const { Stats } = require('../../lib/export/pipeline')
const { exportMode } = require('../../lib/tracer')

function sender () {
  const stats = new Stats()
  const settings = resolveOptions({ serviceName: 'light-trace-demo', exporter: 'otlp', buffer: { closeTimeoutMs: 2000 } })
  const report = new Report(undefined, settings.logLevel)
  report.startup(settings)
  const output = exportMode({ settings, report, stats })
  return {
    onStart () {},
    onEnd (span) { output.sink.accept(span) },
    forceFlush: () => output.flush(),
    shutdown: () => output.close(),
    summary () {
      const { delivered, dropped } = stats
      const lost = Object.values(dropped).reduce((sum, spans) => sum + spans, 0)
      return `${settings.exporter.printableUrl}: ${delivered} spans delivered, ${lost} lost${lost > 0 ? ` (${stats.lastError})` : ''}`
    }
  }
}

module.exports = { sender }
