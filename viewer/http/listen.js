'use strict'

const { once } = require('node:events')

/**
 * Listens on a port of both loopback addresses, or of `host` only.
 * @param {() => import('node:net').Server} create
 * @returns {Promise<import('node:net').Server[]>} the first one has the port
 * @throws the errors of listen, mostly EADDRINUSE
 */
async function listen (create, port, host) {
  const server = await listening(create(), port, host ?? '127.0.0.1')
  if (host !== undefined) return [server]
  try {
    // Some senders resolve `localhost` to ::1. Another program that listens there would get their spans.
    return [server, await listening(create(), server.address().port, '::1')]
  } catch (error) {
    if (error.code !== 'EADDRINUSE') return [server] // a machine without IPv6
    await new Promise((resolve) => server.close(resolve))
    throw error
  }
}

async function listening (server, port, host) {
  server.listen(port, host)
  await once(server, 'listening')
  return server
}

module.exports = { listen }
