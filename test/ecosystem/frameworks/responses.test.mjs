// Plugins that redefine properties of the raw response. The recorded response is the one that was sent.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test } from 'node:test'
import express from '@fastify/express'
import replyFrom from '@fastify/reply-from'
import { leaveStream, start } from './start.mjs'

// @fastify/express redefines `headersSent` on each raw response.
test('@fastify/express: statuses, errors, kept traces, metrics and response headers are the same as without it', async (t) => {
  const { app, collector, url } = await start(t, async (app) => {
    await app.register(express)
    app.get('/ok', async (request, reply) => { reply.header('x-cache', 'hit'); return 'ok' })
    app.get('/thrown', async () => { throw new RangeError('out of range') })
    app.use('/middleware', (request, response) => response.status(418).end())
  }, { metrics: { exporter: 'none' }, headers: { response: ['x-cache'] } })
  for (const path of ['/ok', '/thrown', '/middleware']) await (await fetch(url + path)).text()
  const [ok, thrown, middleware, ...more] = await collector.spans()
  assert.deepEqual(more, [])
  assert.deepEqual(pick(ok), { status: 'UNSET', code: 200, error: undefined, events: [] })
  assert.deepEqual(ok.attributes['http.response.header.x-cache'], ['hit'])
  assert.deepEqual(pick(thrown), { status: 'ERROR', code: 500, error: 'RangeError', events: ['exception'] })
  assert.equal(thrown.events[0].attributes['exception.message'], 'out of range')
  assert.deepEqual(pick(middleware), { status: 'UNSET', code: 418, error: undefined, events: [] })
  const text = await app.lightTrace.metrics()
  const counted = text.split('\n').filter((line) => line.startsWith('http_server_request_duration_seconds_count')).map((line) =>
    ['http_route', 'http_response_status_code', 'error_type'].map((name) => new RegExp(`${name}="([^"]*)"`).exec(line)?.[1]).join(' '))
  assert.deepEqual(counted.sort(), [' 418 ', '/ok 200 ', '/thrown 500 RangeError'])
})

test('@fastify/express: failed requests that are not sampled are kept', async (t) => {
  const { collector, url } = await start(t, async (app) => {
    await app.register(express)
    app.get('/ok', async () => 'ok')
    app.get('/thrown', async () => { throw new Error('no') })
  }, { sampler: 'always_off', keep: { errors: true } })
  for (let i = 0; i < 10; i++) for (const path of ['/ok', '/thrown']) await (await fetch(url + path)).text()
  assert.deepEqual((await collector.spans()).map(({ name }) => name), Array(10).fill('GET /thrown'))
})

test('@fastify/express: a hijacked stream is no error when the client disconnects', async (t) => {
  const { collector, url } = await start(t, async (app) => {
    await app.register(express)
    app.get('/events', (request, reply) => {
      reply.hijack()
      reply.raw.writeHead(200, { 'content-type': 'application/octet-stream' })
      reply.raw.write('first')
    })
  })
  await leaveStream(`${url}/events`)
  const [span] = await collector.spans()
  assert.deepEqual(pick(span), { status: 'UNSET', code: 200, error: undefined, events: [] })
})

// With @fastify/express, Fastify believes that the head was not sent, and sets the status to 500.
for (const [beside, plugins] of [['', []], [' beside @fastify/express', [express]]]) {
  test(`@fastify/reply-from${beside}: if an upstream resets after its headers, the recorded status is the one that was sent`, async (t) => {
    const resets = []
    const upstream = net.createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfirst'))
      resets.push(() => socket.resetAndDestroy())
    })
    await new Promise((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    t.after(() => upstream.close())
    const { app, collector, url } = await start(t, async (app) => {
      for (const plugin of plugins) await app.register(plugin)
      await app.register(replyFrom, { base: `http://127.0.0.1:${upstream.address().port}`, retryMethods: [] })
      app.get('/', (request, reply) => reply.from('/'))
    }, { metrics: { exporter: 'none' } })
    const [response] = await once(http.get(url), 'response')
    assert.equal(response.statusCode, 200)
    await once(response, 'data')
    for (const reset of resets) reset()
    await assert.rejects(response.toArray())
    const [server] = await collector.spans()
    assert.equal(server.attributes['http.response.status_code'], 200)
    assert.equal(server.status.code, 'ERROR')
    assert.match(await app.lightTrace.metrics(), /http_server_request_duration_seconds_count\{[^}]*http_response_status_code="200"/)
    assert.equal(server.attributes['error.type'], 'response_terminated')
  })
}

function pick ({ status, attributes, events }) {
  return { status: status.code, code: attributes['http.response.status_code'], error: attributes['error.type'], events: events.map(({ name }) => name) }
}
