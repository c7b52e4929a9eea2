// undici-thread-interceptor, which needs Node 22.10. plugins.test.mjs runs this program.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { start } from './start.mjs'

test('calls between threads', async (t) => {
  const threads = createRequire(import.meta.url)('undici-thread-interceptor')
  const { Agent, request: send } = createRequire(import.meta.resolve('undici-thread-interceptor'))('undici')
  const inner = await start(t, (app) => app.get('/', async ({ headers: { traceparent, tracestate, baggage } }) => ({ traceparent, tracestate, baggage })), { spans: { unrouted: true } })
  const { port1, port2 } = new MessageChannel()
  t.after(() => port1.close())
  const wired = threads.wire({ server: inner.app, port: port2 })
  t.after(() => wired.close())
  const interceptor = threads.createThreadInterceptor({ domain: '.local' })
  await interceptor.route('stock', port1)
  const agent = new Agent().compose(interceptor)
  t.after(() => agent.destroy())
  const { collector, url } = await start(t, (app) => {
    app.get('/', async ({ headers: { traceparent, tracestate, baggage } }) =>
      (await send('http://stock.local/', { dispatcher: agent, headers: { traceparent, tracestate, baggage } })).body.json())
  }, { trustIncoming: false })
  const stranger = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'evil=1', baggage: 'role=admin' }
  const arrived = await (await fetch(url, { headers: stranger })).json()
  const [, call] = await collector.spans()
  assert.equal(call.attributes['server.address'], 'stock.local')
  assert.match(arrived.traceparent, new RegExp(`^00-${call.traceId}-${call.spanId}-`))
  assert.ok(!arrived.tracestate && !arrived.baggage)
  const served = await inner.collector.spans()
  assert.deepEqual(served.map(({ parentSpanId }) => parentSpanId), [call.spanId])
})
