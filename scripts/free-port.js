'use strict'

const net = require('node:net')
const { once } = require('node:events')

module.exports = { freePort }

/** A loopback port that was free a moment ago. A server can listen on it, or it can serve as a port that refuses connections. */
async function freePort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
