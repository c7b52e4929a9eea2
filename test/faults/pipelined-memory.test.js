'use strict'

// What pipelined requests leave in V8's old generation.

const { test } = require('tap')
const { runInChild } = require('../support/child')
const { openClients } = require('../support/pipelined-clients')

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

// Ended objects in the old generation must not refer to later ones, or V8 would move each later request there, too.
for (const [what, trace] of [['recorded', {}], ['with metrics', { metrics: { exporter: 'none' } }], ['not sampled', { sampler: 'always_off' }], ['with `blockedLoop`', { blockedLoop: true }]]) {
  test(`pipelined requests, ${what}, are freed by collections of the young generation`, async (t) => {
    const child = runInChild(t, async ({ Fastify, lightTrace, say }, trace) => {
      const app = Fastify({ forceCloseConnections: true })
      await app.register(lightTrace, { exporter: 'none', ...trace })
      app.get('/', async () => 'ok')
      app.get('/old', async () => {
        const space = require('node:v8').getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')
        return { bytes: space.space_used_size }
      })
      await app.listen({ port: 0, host: '127.0.0.1' })
      say(app.server.address().port)
    }, { args: [trace], nodeArgs: ['--max-semi-space-size=1', '--initial-old-space-size=1024'], killAfterMs: 120_000 })
    const port = await child.said()
    t.teardown(() => child.kill('SIGKILL'))
    const old = async () => (await (await fetch(`http://127.0.0.1:${port}/old`)).json()).bytes
    const clients = await openClients(port, 3)
    t.teardown(() => clients.close())
    await clients.send(5000, () => GET)
    const before = await old()
    await clients.send(20_000, () => GET)
    const bytes = (await old() - before) / 20_000
    t.ok(bytes < 400, `${Math.round(bytes)} bytes of each request reached the old generation`)
  })
}
