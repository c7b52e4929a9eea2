'use strict'

// WebSocket messages are events of the connection. The handler's request.trace binds their listeners to the request.

const { test } = require('tap')
const { once } = require('node:events')
const websocket = require('@fastify/websocket')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')

test('in socket.on("message") request.trace.bind restores the request\'s context', async (t) => {
  const seen = []
  const { port, collector } = await tracedApp(t, {
    routes: async (app) => {
      await app.register(websocket)
      app.get('/ws', { websocket: true }, (socket, request) => {
        seen.push(lightTrace.current() === request.trace)
        socket.on('message', request.trace.bind(async (data) => {
          seen.push(lightTrace.current() === request.trace)
          await request.trace.withSpan('message', async () => {})
          socket.send(String(data))
        }))
      })
    }
  })
  const WebSocket = require('ws')
  const client = new WebSocket(`ws://127.0.0.1:${port}/ws`)
  await once(client, 'open')
  client.send('hello')
  const [answer] = await once(client, 'message')
  t.equal(String(answer), 'hello')
  client.close()
  await once(client, 'close')
  t.same(seen, [true, true])
  t.equal(await collector.tree(), 'SERVER GET /ws\n  INTERNAL message')
})
