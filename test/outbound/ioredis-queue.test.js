'use strict'

// ioredis commands that wait for the connection, with the messages and order that ioredis uses. test/services runs ioredis itself.
// Feature: trace-client

const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')

const channel = diagnosticsChannel.tracingChannel('ioredis:command')

class Redis {
  status = 'connecting'
  offlineQueue = []
  connect () {}
  sendCommand (command) {
    if (this.status !== 'ready') {
      this.offlineQueue.push(command)
      return 'waits'
    }
    channel.tracePromise(async () => 'OK', { command: command.name, args: command.args, serverAddress: 'redis', serverPort: 1 })
    return 'sent'
  }

  ready () {
    this.status = 'ready'
    for (const command of this.offlineQueue.splice(0)) this.sendCommand(command)
  }
}

test('each command has its span below its own request, whichever request opens the connection', async (t) => {
  const redis = lightTrace.traceClient(new Redis())
  t.equal(lightTrace.traceClient(redis), redis)
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => {
      app.get('/send/:id', async ({ params }) => redis.sendCommand({ name: 'get', args: [params.id] }))
      app.get('/open', async () => { redis.ready(); return 'ok' })
    }
  })
  t.equal((await app.inject('/send/a')).body, 'waits')
  t.equal((await app.inject('/send/b')).body, 'waits')
  redis.sendCommand({ name: 'get', args: ['nobody'] })
  await app.inject('/open')
  t.equal((await app.inject('/send/c')).body, 'sent')
  const spans = await collector.spans()
  const parentOf = (id) => spans.find(({ spanId }) => spanId === spans.find(({ attributes }) => attributes['db.query.text'] === `GET ${id}`)?.parentSpanId)?.attributes['url.path']
  t.equal(parentOf('a'), '/send/a')
  t.equal(parentOf('b'), '/send/b')
  t.equal(parentOf('c'), '/send/c')
})

test('traceClient affects only its object, and changes nothing for its caller', async (t) => {
  const redis = new Redis()
  lightTrace.traceClient(redis)
  t.equal(redis.sendCommand.name, 'sendCommand')
  t.equal(redis.sendCommand.length, 1)
  t.notOk(Object.keys(redis).includes('sendCommand'))
  t.equal(new Redis().sendCommand, Redis.prototype.sendCommand)
  t.equal(redis.sendCommand({ name: 'get', args: [] }), 'waits')
})

test('commands with which ioredis opens a connection, or a cluster\'s at its first command, have no span', async (t) => {
  const send = (command, ...args) => channel.tracePromise(async () => 'OK', { command, args, serverAddress: 'redis', serverPort: 1 })
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async () => {
      for (const [command, ...args] of [['hello', '3'], ['client', 'SETINFO', 'LIB-VER', '5'], ['CLIENT', 'SETNAME', 'a'], ['info'], ['cluster', 'SLOTS'], ['readonly'],
        ['get', 'k'], ['client', 'LIST'], ['info', 'memory'], ['cluster', 'NODES']]) await send(command, ...args)
      return 'ok'
    })
  })
  await app.inject('/')
  t.equal(await collector.tree(), 'SERVER GET /\n  CLIENT GET\n  CLIENT CLIENT\n  CLIENT INFO\n  CLIENT CLUSTER')
})
