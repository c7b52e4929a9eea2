// Gateways, WebSockets, server-sent events and custom plugins together with light-trace. answers.test.mjs tests the plugins that most apps
// use.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import autoload from '@fastify/autoload'
import httpProxy from '@fastify/http-proxy'
import websocket from '@fastify/websocket'
import fastify from 'fastify'
import fp from 'fastify-plugin'
import lightTrace from 'light-trace'
import { WebSocket } from 'ws'
import { leaveStream, start } from './start.mjs'

test('a gateway: the inner service’s span is a child of the call', async (t) => {
  const inner = await start(t, (app) => app.get('/stock/:id', async (request) => ({ traceId: request.trace.traceId })))
  const { collector, url } = await start(t, (app) => app.register(httpProxy, { upstream: inner.url, prefix: '/api' }))
  const { traceId } = await (await fetch(`${url}/api/stock/7`)).json()
  const spans = await collector.spans()
  assert.deepEqual(spans.map(({ kind }) => kind), ['SERVER', 'CLIENT'])
  assert.equal(spans[0].traceId, traceId)
  const [served] = await inner.collector.spans()
  assert.equal(served.parentSpanId, spans[1].spanId)
})

test('a WebSocket is one span, and its handler has the request’s context', async (t) => {
  const { collector, url } = await start(t, async (app) => {
    await app.register(websocket)
    app.get('/socket', { websocket: true }, (socket, request) => {
      const { traceId } = request.trace
      socket.on('message', request.trace.bind((message) => socket.send(`${message} ${lightTrace.current().traceId === traceId}`)))
    })
  })
  const client = new WebSocket(`${url.replace('http', 'ws')}/socket`)
  await new Promise((resolve) => client.once('open', resolve))
  const answer = new Promise((resolve) => client.once('message', (data) => resolve(String(data))))
  client.send('ping')
  assert.equal(await answer, 'ping true')
  const closed = new Promise((resolve) => client.once('close', resolve))
  client.close()
  await closed
  const [span, ...more] = await collector.spans()
  assert.deepEqual(more, [])
  assert.equal(span.attributes['http.response.status_code'], 101)
  assert.equal(span.status.code, 'UNSET')
})

test('server-sent events are no error when the client disconnects', async (t) => {
  const { collector, url } = await start(t, (app) => app.get('/events', (request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
    reply.raw.write('data: 1\n\n')
  }))
  await leaveStream(`${url}/events`)
  assert.equal(await collector.tree(), 'SERVER GET /events')
})

test('@fastify/autoload loads light-trace from a folder of plugins, with the flags of fastify-cli', async (t) => {
  const folder = mkdtempSync(join(import.meta.dirname, 'autoload-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'plugins'))
  mkdirSync(join(folder, 'routes'))
  // Its name sorts first, so that all later plugins are traced from their first hook.
  writeFileSync(join(folder, 'plugins', '00-light-trace.cjs'), "module.exports = require('light-trace')")
  writeFileSync(join(folder, 'routes', 'root.cjs'), "module.exports = async (app) => { app.get('/', async (request) => request.trace.traceId.length) }")
  const lines = []
  const app = fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.after(() => app.close())
  await app.register(autoload, { dir: join(folder, 'plugins'), options: { tier: 'gold', exporter: 'none' } })
  await app.register(autoload, { dir: join(folder, 'routes'), options: { tier: 'gold' } })
  assert.equal((await app.inject('/')).body, '32')
  assert.equal(app.lightTrace.stats().spans.started, 1)
  assert.deepEqual(lines.map(({ code }) => code), ['LT_WARN_OPTION_UNKNOWN'])
})

test('a custom plugin can depend on light-trace by its name', async (t) => {
  const { app, collector, url } = await start(t, async (app) => {
    await app.register(fp(async (app) => app.addHook('preHandler', async (request) => request.trace.set('tenant', 'acme')), { name: 'tenant', dependencies: ['light-trace'] }))
    app.get('/', async () => lightTrace.current().get('tenant'))
  })
  assert.equal(await (await fetch(url)).text(), 'acme')
  assert.equal(app.hasPlugin('light-trace'), true)
  assert.equal(await collector.tree(), 'SERVER GET /')
})

test('undici-thread-interceptor: calls between threads carry their trace, and nothing from an untrusted caller', () => {
  // The package reads performance.nodeTiming.uvMetricsInfo, which Node has since 22.10. On Node 20 it answers no calls, with or without
  // light-trace.
  execFileSync(JSON.parse(process.env.NODES)[24], ['threads.mjs'], { cwd: import.meta.dirname, timeout: 30_000 })
})
