'use strict'

// Thinning a full buffer changes the bytes of spans. These are read back from real collectors of other authors.
// Feature: thinning

const { test } = require('tap')
const net = require('node:net')
const { once } = require('node:events')
const { randomBytes } = require('node:crypto')
const { setTimeout: pause } = require('node:timers/promises')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { freePort } = require('../../scripts/free-port')
const { collectors } = require('../support/collectors')

for (const collector of collectors) {
  test(`spans that an outage has thinned reach ${collector.name} complete, with the number of spans that each represents`, async (t) => {
    const url = new URL(collector.tracesUrl)
    const target = { host: url.hostname, port: url.port }
    const way = net.createServer((socket) => {
      const there = net.connect(target)
      socket.on('error', () => there.destroy()).pipe(there.on('error', () => socket.destroy())).pipe(socket)
    })
    const port = await freePort()
    url.port = port
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(lightTrace, { serviceName: 'outage', exporter: { url: url.href }, registerGlobals: false, slow: false, buffer: { maxBytes: 128 * 1024, flushDelayMs: 20 } })
    app.get('/orders/:id', async (request) => {
      request.trace.withSpan('load', (span) => { span.setAttribute('rows', 1) })
      return ''
    })
    // The random bits of this id make it survive thinning at any level.
    const traceId = `${randomBytes(9).toString('hex')}ffffff${randomBytes(4).toString('hex')}`
    await app.inject({ url: '/orders/first', headers: { traceparent: `00-${traceId}-b7ad6b7169203331-03`, tracestate: 'vendor=1,ot=th:0;x:y' } })
    for (let i = 0; i < 3000; i++) {
      await app.inject('/orders/1')
      if (i % 50 === 0) await pause(1)
    }
    const { thinned, dropped } = app.lightTrace.stats().spans
    t.ok(thinned > 3000, `${thinned} spans were thinned`)
    t.same(dropped, {})

    way.listen(port, '127.0.0.1')
    t.teardown(() => way.close())
    await once(way, 'listening')
    do {
      await app.lightTrace.flush()
      await pause(10) // an earlier attempt may have ended the flush
    } while (app.lightTrace.stats().spans.queued > 0)
    const spans = await collector.spansOf(traceId, 2)
    t.same(spans.map(({ name, kind }) => [name, kind]), [['GET /orders/:id', 'SERVER'], ['load', 'INTERNAL']])
    t.equal(spans[1].parentSpanId, spans[0].spanId)
    t.equal(spans[1].attributes.rows, 1)
    t.equal(spans[0].attributes['url.path'], '/orders/first')
    for (const { traceState } of spans) t.match(traceState, /^ot=th:[8cef]{1,6};x:y,vendor=1$/)
    t.equal(app.lightTrace.stats().spans.rejected, 0)
  })
}
