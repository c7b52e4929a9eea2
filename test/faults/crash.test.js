'use strict'

// A crash logs what it loses, in one line with a number, and changes nothing else.

const { test } = require('tap')
const { startFakeCollector } = require('../support/fake-collector')
const { runInChild } = require('../support/child')

const crash = async ({ Fastify, lightTrace }, url, how, options = {}) => {
  const apps = [Fastify(), Fastify()]
  for (const app of apps) {
    await app.register(lightTrace, { exporter: { url }, registerGlobals: false, metrics: how === 'metrics', ...options })
    app.get('/', async () => 'ok')
    await app.inject('/')
    await app.inject('/')
  }
  await new Promise((resolve) => setImmediate(resolve))
  if (how === 'delivered') for (const app of apps) await app.lightTrace.flush()
  if (how === 'handled') process.on('uncaughtException', () => process.exit(9))
  if (how === 'rejection') Promise.reject(new Error('a crash'))
  else setImmediate(() => { throw new Error('a crash') })
}

const LINE = /\[LT_WARN_LOSS\] the process crashes, with 4 spans not delivered\n/g

async function crashing (t, how, env = {}) {
  const collector = await startFakeCollector(t)
  if (how !== 'delivered') collector.script = [{ hang: true }] // so that sent spans are not delivered either
  return runInChild(t, crash, { args: [collector.url, how], env }).exit
}

test('a crash logs one line per process, and keeps Node\'s own message and exit code', async (t) => {
  for (const how of ['throw', 'rejection', 'metrics']) {
    const { code, stderr } = await crashing(t, how)
    t.equal(stderr.match(LINE)?.length, 1, stderr)
    t.match(stderr, /Error: a crash/)
    t.equal(code, 1)
  }
})

test('nothing is logged if nothing is lost, if the process continues, or if logging is off', async (t) => {
  for (const [how, env] of [['delivered', {}], ['handled', {}], ['throw', { OTEL_LOG_LEVEL: 'none' }]]) {
    const { stderr } = await crashing(t, how, env)
    t.notMatch(stderr, LINE, how)
  }
})
