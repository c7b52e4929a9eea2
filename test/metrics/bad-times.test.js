'use strict'

// Clocks that jump, and scrapes at any time.
// Feature: metrics

const http = require('node:http')
const { once } = require('node:events')
const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { runInChild } = require('../support/child')
const { startMetricSink } = require('../support/metric-sink')

const DURATION = 'http.server.request.duration'
const HOUR_MS = 3_600_000

const work = async (tools, jumpMs, temporality) => {
  const wall = Date.now
  let jumped = 0
  Date.now = () => wall() + jumped
  const { Fastify, lightTrace } = tools // loaded here, when it takes the patched clock
  const app = Fastify()
  await app.register(lightTrace, { metrics: { temporality } })
  app.get('/', async () => 'x')
  for (let i = 0; i < 3; i++) {
    await app.inject('/')
    if (i === 1) jumped = jumpMs
    await app.lightTrace.flush()
  }
  await app.close()
}

for (const temporality of ['cumulative', 'delta']) {
  for (const [name, jumpMs] of [['an hour back', -HOUR_MS], ['an hour ahead', HOUR_MS]]) {
    test(`after the wall clock jumps ${name}, ${temporality} metrics are complete`, async (t) => {
      const sink = await startMetricSink(t)
      const { stderr } = await runInChild(t, work, { args: [jumpMs, temporality], env: { OTEL_EXPORTER_OTLP_ENDPOINT: sink.origin } }).exit
      t.equal(stderr, '')
      // The decoder fails on a point that starts after its time.
      const points = sink.exports.flatMap(({ metrics }) => metrics).filter(({ name }) => name === DURATION).map(({ points: [point] }) => point)
      t.ok(points.length >= 3)
      if (temporality === 'delta') t.equal(points.reduce((sum, { count }) => sum + count, 0), 3, 'each request once')
      else t.same(points.map(({ count }) => count).slice(0, 3), [1, 2, 3])
      t.ok(points.every(({ sum, min, max, count }) => min >= 0 && max < 60 && sum < 60 * count), 'the jump is not part of a duration')
      const moved = Number(points.at(-1).time - points[0].time) / 1e6
      t.ok(Math.abs(moved - jumpMs) < 60_000, 'times are those of the wall clock')
      if (temporality === 'cumulative' && jumpMs > 0) t.equal(new Set(points.map(({ start }) => start)).size, 1, 'no restart')
    })
  }
}

test('scrapes can overlap, run while the app closes, and follow the close', async (t) => {
  const app = Fastify({ forceCloseConnections: true })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', metrics: { path: '/metrics', attributes: ({ query }) => ({ n: query.n }) } })
  app.get('/', async () => 'x')
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  for (let i = 0; i < 400; i++) await app.inject(`/?n=${i}`)
  const [first, second] = await Promise.all([1, 2].map(() => fetch(`${origin}/metrics`).then((response) => response.text())))
  t.equal(count(first), 400)
  t.equal(second, first)
  const [response] = await once(http.get(`${origin}/metrics`).on('error', () => {}), 'response')
  response.on('error', () => {})
  await once(response, 'data')
  await app.close()
  t.equal(count(await app.lightTrace.metrics()), 400, 'recorded values can be read after the end')
})

function count (text) {
  return text.match(/http_server_request_duration_seconds_count\{[^\n]*\/"[^\n]*\} 1\n/g)?.length ?? 0
}
