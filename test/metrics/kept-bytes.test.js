'use strict'

// What metrics keep of attributes is bounded by bytes, whatever values an application gives.

const v8 = require('node:v8')
const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')

v8.setFlagsFromString('--expose-gc')
const gc = require('node:vm').runInNewContext('gc')

const MIB = 1024 * 1024

async function heldBy (t, measure) {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', metrics: true, registerGlobals: false, limits: { attributeValueLength: 1000 } })
  await app.ready()
  const counter = app.lightTrace.meterProvider.getMeter('app').createCounter('uses')
  measure(counter)
  gc()
  const before = process.memoryUsage()
  for (let i = 0; i < 3000; i++) measure(counter, i)
  gc()
  const after = process.memoryUsage()
  return after.heapUsed + after.external - before.heapUsed - before.external
}

// A flat text of one byte a character.
const long = (i, length = 50_000) => Buffer.alloc(length, `${i}_`).toString('latin1')

test('long values that are one series when they are cut', async (t) => {
  const held = await heldBy(t, (counter, i) => counter.add(1, { value: `${'x'.repeat(1000)}${long(i)}` }))
  t.ok(held < 4 * MIB, `${held} bytes`)
})

test('parts of long values', async (t) => {
  const held = await heldBy(t, (counter, i) => counter.add(1, { value: long(i).slice(-200) }))
  t.ok(held < 20 * MIB, `${held} bytes`)
})

test('many values of all the length that is allowed', async (t) => {
  const held = await heldBy(t, (counter, i) => counter.add(1, Object.fromEntries(Array.from({ length: 20 }, (_, j) => [`k${j}`, long(i, 990)]))))
  t.ok(held < 24 * MIB, `${held} bytes`)
})
