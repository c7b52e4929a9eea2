'use strict'

// The setup that several tests of whole processes share.

const net = require('node:net')
const { listenAnew } = require('./new-port')

module.exports = { unusedUrl, oneRequest }

// Returns the URL of a port on which nothing listens.
async function unusedUrl () {
  const server = net.createServer()
  const port = await listenAnew(server)
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}/v1/traces`
}

// For runInChild.
async function oneRequest ({ Fastify, lightTrace, say }, url, options = {}) {
  const app = Fastify()
  await app.register(lightTrace, { exporter: { url }, ...options })
  app.get('/', async () => 'ok')
  await app.inject('/')
  await new Promise((resolve) => setImmediate(resolve))
  say(app.lightTrace.stats().spans.accepted)
}
