'use strict'

// light-trace with the README's defaults; a case may add options. Everything else comes as it comes
// to a user: through OTEL_* variables.

const path = require('node:path')

// bench:compare measures another commit's light-trace with this commit's bench.
const root = process.env.LIGHT_TRACE_ROOT ?? path.join(__dirname, '../../..')

module.exports = ({ logger, plugin = {} }) => {
  const lightTrace = require(root)
  return {
    fastify: logger ? { logger: { level: 'info', file: '/dev/null' } } : {},
    versions: { 'light-trace': require(path.join(root, 'package.json')).version },
    async register (app) {
      await app.register(lightTrace, plugin)
    },
    manyAttributes (request) {
      const span = request.trace.span
      for (let i = 0; i < 10; i++) {
        span.setAttribute(textKeys[i], 'a value of twenty ch')
        span.setAttribute(numberKeys[i], i)
      }
      request.trace.withSpan('load user', noop)
    },
    async flush (app, timeoutMs) {
      await app.lightTrace.flush({ timeoutMs })
    },
    counts: (app) => countsOf(app.lightTrace.stats())
  }
}

const textKeys = Array.from({ length: 10 }, (_, i) => `app.attribute.text.${i}`)
const numberKeys = Array.from({ length: 10 }, (_, i) => `app.attribute.number.${i}`)
function noop () {}

function countsOf ({ mode, spans, buffer }) {
  return {
    mode,
    created: spans.accepted,
    unsampled: spans.unsampled,
    delivered: spans.delivered,
    handedOver: spans.handedOver,
    rejected: spans.rejected,
    dropped: Object.values(spans.dropped).reduce((sum, n) => sum + n, 0),
    waiting: spans.queued + spans.inFlight,
    bufferBytes: buffer.bytes
  }
}
