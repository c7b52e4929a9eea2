'use strict'

// A collector that answers 404: to metrics and logs, which it need not support, and to spans.

const { test } = require('tap')
const { runInChild } = require('../support/child')
const { without } = require('../support/features')

test('a 404 for metrics or logs is logged once and retried after a minute, and spans continue', { skip: without('logs') || without('metrics') }, async (t) => {
  const child = runInChild(t, async ({ Fastify, root, say }) => {
    const { performance } = require('node:perf_hooks')
    const now = performance.now.bind(performance)
    let aheadMs = 0
    performance.now = () => now() + aheadMs
    const seen = []
    let isAbsent = true
    const server = require('node:http').createServer((request, response) => {
      seen.push(request.url)
      if (isAbsent && request.url !== '/v1/traces') response.statusCode = 404
      request.resume().on('end', () => response.end())
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    const codes = []
    const app = Fastify({ logger: { stream: { write: (line) => codes.push(JSON.parse(line).code) } } })
    const url = `http://127.0.0.1:${server.address().port}`
    await app.register(require(root), { exporter: { url }, metrics: { intervalMs: 1e9 }, logs: { export: true } })
    app.get('/', async () => 'ok')
    await app.ready()
    const after = async (ms) => {
      aheadMs += ms
      await app.inject('/')
      await app.lightTrace.flush()
      say(seen.splice(0).sort())
    }
    for (const ms of [0, 0, 50_000, 9000]) await after(ms)
    isAbsent = false
    for (const ms of [0, 61_000, 0]) await after(ms)
    say(codes.filter((code) => /ENDPOINT/.test(code)).sort())
    server.closeAllConnections()
    server.close()
    await app.close()
  })
  const { said, code } = await child.exit
  const all = ['/v1/logs', '/v1/metrics', '/v1/traces']
  const spans = ['/v1/traces']
  t.same(said, [all, spans, spans, all, spans, all, all, ['LT_WARN_LOGS_ENDPOINT', 'LT_WARN_METRICS_ENDPOINT']])
  t.equal(code, 0)
})
