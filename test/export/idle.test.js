'use strict'

// What an idle connection keeps of its last request. Node's keep-alive timer was created in that request's context.

const { once } = require('node:events')
const net = require('node:net')
const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { bytesInUse } = require('../support/bytes-in-use')
const { startFakeCollector } = require('../support/fake-collector')

const MIB = 1024 * 1024
const CONNECTIONS = 100

test('an idle connection keeps no attributes, exceptions or links of a delivered request', async (t) => {
  const collector = await startFakeCollector(t)
  const app = Fastify({ keepAliveTimeout: 60_000 })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: collector.url }, registerGlobals: false })
  app.get('/', async ({ trace: { span } }) => {
    span.setAttribute('long', text())
    span.addEvent('happened', { long: text() })
    span.addLink({ context: { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 }, attributes: { long: text() } })
    return 'ok'
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const sockets = []
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  const ask = async () => {
    const socket = net.connect(app.server.address().port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await once(socket, 'data')
    sockets.push(socket)
  }
  await ask()
  const before = await bytesAfterFlush(app)
  for (let i = 0; i < CONNECTIONS; i++) await ask()
  const held = await bytesAfterFlush(app) - before
  t.equal(app.lightTrace.stats().spans.delivered, 1 + CONNECTIONS)
  t.ok(held < 4 * MIB, `${held} bytes`)
})

let number = 0
function text () {
  return Buffer.alloc(60_000, `${number++}_`).toString('latin1')
}

async function bytesAfterFlush (app) {
  await app.lightTrace.flush()
  return bytesInUse()
}
