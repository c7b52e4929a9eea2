'use strict'

const net = require('node:net')
const { once } = require('node:events')

const holders = new Map()

module.exports = { freePort }

/**
 * A port that nobody listens on, and that stays this process's until it ends. A server of this process or of another can listen on it
 * whenever it likes. Until then, and whenever that server is down, it refuses connections: the system gives it to nobody who asks for
 * any port. A connection from the port holds it. As its address may be reused, which libuv and most servers ask for, it is in nobody's
 * way.
 * @param {string} [host] an address of this machine
 */
async function freePort (host = '127.0.0.1') {
  if (!holders.has(host)) holders.set(host, startHolder(host))
  const socket = net.connect({ host, port: await holders.get(host), localAddress: host }).unref()
  await once(socket, 'connect')
  return socket.localPort
}

async function startHolder (host) {
  const server = net.createServer((socket) => socket.unref()).listen(0, host).unref()
  await once(server, 'listening')
  return server.address().port
}
