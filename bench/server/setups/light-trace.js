'use strict'

// light-trace with the README's defaults. A case may add options. Everything else is set as users set it: with OTEL_* variables.

const path = require('node:path')
const loggerOptions = require('./logger')

// `npm run bench -- --against` measures another commit's light-trace with this commit's bench.
const root = process.env.LIGHT_TRACE_ROOT ?? path.join(__dirname, '../../..')

// way: 'spanProcessors' or 'tracerProvider', followed by the stock SDK's pipeline; isBeside: adds a processor that does nothing next to
// the exporter; tenants: the number of values of `metrics.attributes`, in turn
module.exports = ({ logger, way, isBeside, tenants, plugin = {} }) => {
  const lightTrace = require(root)
  const stock = way ? stockPipeline() : null
  const options = {
    ...plugin,
    ...way && { [way]: way === 'spanProcessors' ? [stock.processor] : stock.provider },
    ...isBeside && { spanProcessors: [{ onStart () {}, onEnding () {}, onEnd () {}, async forceFlush () {}, async shutdown () {} }] },
    ...tenants && { metrics: { attributes: tenantsInTurn(tenants) } }
  }
  let listen
  return {
    fastify: logger ? { logger: loggerOptions(logger) } : {},
    versions: () => ({ 'light-trace': require(path.join(root, 'package.json')).version }),
    async register (app) {
      await app.register(lightTrace, options)
    },
    manyAttributes (request) {
      const span = request.trace.span
      for (let i = 0; i < 10; i++) {
        span.setAttribute(textKeys[i], 'a value of twenty ch')
        span.setAttribute(numberKeys[i], i)
      }
      request.trace.withSpan('load user', noop)
    },
    traceClient: lightTrace.traceClient,
    annotate: ({ trace }, key, value) => trace.span.setAttribute(key, value),
    inSpan: ({ trace }, name, fn) => trace.withSpan(name, fn),
    listen (state) {
      listen ??= require('../call-channels')(root) // loaded late, so that it is not part of a start
      listen(state)
    },
    async flush (app, timeoutMs) {
      await app.lightTrace.flush({ timeoutMs })
      if (stock) await stock.flush()
    },
    counts: (app) => ({ ...countsOf(app.lightTrace.stats()), ...(stock && exportedBy(stock)) })
  }
}

function tenantsInTurn (count) {
  let n = 0
  return () => ({ 'app.tenant': `tenant ${n++ % count}` })
}

function stockPipeline () {
  const { pipeline, provider } = require('../sdk')(2)
  const stock = pipeline()
  stock.provider = provider(stock.processor)
  return stock
}

// light-trace hands spans over to the stock pipeline, which counts what was sent and lost.
function exportedBy (stock) {
  const { delivered, dropped } = stock.counts()
  return { exported: delivered, droppedLater: dropped }
}

// Literals, as in an application's source: V8 compares them by address.
const textKeys = ['app.user.id', 'app.user.plan', 'app.user.region', 'app.tenant.name', 'app.order.currency', 'app.order.status', 'app.feature.variant', 'app.cache.result', 'app.queue.name', 'app.payment.method']
const numberKeys = ['app.order.items', 'app.order.total', 'app.order.discount', 'app.cart.size', 'app.cache.age', 'app.queue.depth', 'app.retry.count', 'app.payload.rows', 'app.search.hits', 'app.search.page']
function noop () {}

function countsOf ({ mode, spans, buffer }) {
  return {
    mode,
    created: spans.accepted,
    unsampled: spans.unsampled,
    delivered: spans.delivered,
    handedOver: spans.handedOver,
    rejected: spans.rejected,
    dropped: Object.values(spans.dropped).reduce((sum, n) => sum + n, spans.thinned),
    waiting: spans.queued + spans.inFlight,
    bufferBytes: buffer.bytes
  }
}
