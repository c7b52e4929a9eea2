'use strict'

// The bytes of attributes that metrics keep are bounded, whatever values an application passes.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { ServerMetrics } = require('../../lib/features/metrics/server-metrics')
const { RouteInfo } = require('../../lib/span/http-info')
const clock = require('../../lib/runtime/timers')
const { bytesInUse } = require('../support/bytes-in-use')
const { newRegistry, encodeAll, scope } = require('./support')

const MIB = 1024 * 1024

async function heldBy (t, measure) {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', metrics: true, registerGlobals: false, limits: { attributeValueLength: 1000 } })
  await app.ready()
  const counter = app.lightTrace.meterProvider.getMeter('app').createCounter('uses')
  measure(counter)
  const before = await bytesInUse()
  for (let i = 0; i < 3000; i++) measure(counter, i)
  return await bytesInUse() - before
}

// A flat one-byte string.
const long = (i, length = 50_000) => Buffer.alloc(length, `${i}_`).toString('latin1')

test('long values that are one series after truncation take bounded memory', async (t) => {
  const held = await heldBy(t, (counter, i) => counter.add(1, { value: `${'x'.repeat(1000)}${long(i)}` }))
  t.ok(held < 4 * MIB, `${held} bytes`)
})

test('slices of long values take bounded memory', async (t) => {
  const held = await heldBy(t, (counter, i) => counter.add(1, { value: long(i).slice(-200) }))
  t.ok(held < 20 * MIB, `${held} bytes`)
})

test('many values of the maximum length take bounded memory', async (t) => {
  const held = await heldBy(t, (counter, i) => counter.add(1, Object.fromEntries(Array.from({ length: 20 }, (_, j) => [`k${j}`, long(i, 990)]))))
  t.ok(held < 24 * MIB, `${held} bytes`)
})

test('with delta, replaced series of twenty routes take bounded memory', async (t) => {
  const registry = newRegistry({ temporality: 'delta', seriesMax: 200 })
  const options = { buckets: null, attributes: (tenant) => ({ tenant }), activeRequests: false, bodySizes: false }
  const server = new ServerMetrics(registry, scope, options, {})
  const routes = Array.from({ length: 20 }, (_, i) => new RouteInfo('GET', '', `/${i}`))
  const peer = { scheme: 'http', protocolVersion: '1.1' }
  const during = (day) => {
    for (let i = 0; i < 150; i++) {
      const ended = { route: routes[i % 20], peer, httpStatus: 200, errorType: '', start: 0, endedAt: 1, exemplarFlags: 0 }
      server.ended(ended, { request: `${day} ${i}` })
    }
    encodeAll(registry).delivered()
    registry.startInterval(clock.now())
  }
  during(0)
  const before = await bytesInUse()
  for (let day = 1; day < 100; day++) during(day)
  const held = await bytesInUse() - before
  t.ok(held < 4 * MIB, `${held} bytes`)
  t.equal(server.duration.list.length, 150)
  t.ok(routes.every(({ series }) => series !== null))
})
