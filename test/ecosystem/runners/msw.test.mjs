// msw in a separate process, because nock (in runners.test.mjs) intercepts the same calls as soon as it is loaded.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fastify from 'fastify'
import lightTrace from 'light-trace'
import { http, HttpResponse } from 'msw'
import { setupServer } from 'msw/node'
import { startSink } from '../../test/support/ecosystem.js'

test('msw: requests with mocked calls are traced, and light-trace’s own requests are neither mocked nor refused', async (t) => {
  const sink = await startSink(t)
  const unhandled = []
  const mocks = setupServer(
    http.get('http://stock.example/:id', () => HttpResponse.text('many')),
    http.post('http://stock.example/down', () => HttpResponse.error())
  )
  mocks.listen({ onUnhandledRequest: (request) => { unhandled.push(request.url) } })
  t.after(() => mocks.close())
  const app = fastify()
  await app.register(lightTrace, { exporter: { url: sink.url } })
  app.get('/', async () => (await fetch('http://stock.example/7')).text())
  app.get('/down', () => fetch('http://stock.example/down', { method: 'POST' }).then(() => 'up', () => 'down'))
  assert.equal((await app.inject('/')).body, 'many')
  assert.equal((await app.inject('/down')).body, 'down')
  await app.close()
  assert.deepEqual(unhandled, []) // msw does not see the exporter's requests
  // msw 2 replaces fetch, so that no call is made. msw 3 (Node 22.12 and later) answers on the socket, so there are CLIENT spans, too.
  assert.deepEqual(sink.spans.filter(({ kind }) => kind === 'SERVER').map(({ name, status }) => `${name} ${status.code}`), ['GET / UNSET', 'GET /down UNSET'])
  assert.equal(app.lightTrace.stats().spans.delivered, sink.spans.length)
})
