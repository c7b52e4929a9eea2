'use strict'

const net = require('node:net')
const { once } = require('node:events')

module.exports = { freePort }

/** A port of the loopback that was free a moment ago: for a server to listen on, or as one that refuses. */
async function freePort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
