'use strict'

// The app under test, with or without tracing, and the responses that are expected of it.

const net = require('node:net')
const { once } = require('node:events')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { answerOf } = require('./client')

const PATHS = ['/', '/items/7', '/', '/missing', '/', '/items/8', '/', '/error']
// A response is complete when no data has arrived for this long.
const QUIET_MS = 100

module.exports = { startApp, expectedRequests }

// trace: light-trace's options, or null
async function startApp (trace) {
  // Warnings about losses are discarded: writing them to a terminal would be measured too.
  const app = Fastify({ logger: { level: 'warn', stream: { write () {} } }, forceCloseConnections: true })
  if (trace !== null) await app.register(lightTrace, trace)
  app.get('/', async () => ({ hello: 'world' }))
  app.get('/items/:id', async (request) => {
    await null
    return { id: request.params.id }
  })
  app.get('/error', async (request, reply) => reply.code(500).send({ error: 'as asked for' }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, port: app.server.address().port, close: () => app.close() }
}

// Every app must answer what bare Fastify answers.
async function expectedRequests (port) {
  const requests = []
  for (const path of PATHS) {
    const bytes = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n`)
    const answer = await ask(port, bytes)
    requests.push({ bytes, answer: answerOf(answer), length: answer.length })
  }
  return requests
}

async function ask (port, bytes) {
  const socket = net.connect(port, '127.0.0.1')
  const parts = []
  socket.write(bytes)
  await new Promise((resolve) => {
    let timer = null
    socket.on('data', (part) => {
      parts.push(part)
      clearTimeout(timer)
      timer = setTimeout(resolve, QUIET_MS)
    })
  })
  socket.destroy()
  await once(socket, 'close')
  return Buffer.concat(parts)
}
