'use strict'

// Fastify with a connection of its own, as any app with a database has: every second it writes some bytes and reads the answer.
// In a process that keeps a record of nextTick, as light-trace's do. What its requests cost more is what Node's streams and
// sockets cost once V8 has seen objects of two kinds in them, tracing or not.

const net = require('node:net')
const bareKeptTick = require('./bare-kept-tick')

const EVERY_MS = 1000
const REQUEST = 'POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n'

module.exports = (options) => ({
  ...bareKeptTick(options),
  async register (app) {
    const { hostname, port } = new URL(process.env.OTEL_EXPORTER_OTLP_ENDPOINT)
    const socket = net.connect({ host: hostname, port: Number(port) }).on('data', () => {})
    const timer = setInterval(() => socket.write(REQUEST), EVERY_MS)
    app.addHook('onClose', async () => {
      clearInterval(timer)
      socket.destroy()
    })
  }
})
