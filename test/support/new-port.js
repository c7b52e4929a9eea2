'use strict'

const { once } = require('node:events')
const { freePort } = require('../../scripts/free-port')

module.exports = { listenAnew }

/**
 * Listens on a port that no other server gets, of this process or of another, as long as this process lives: not even while this server
 * is down. light-trace logs some things once per address and process, and what it sends again must not reach somebody else's test.
 * @param {import('node:net').Server} server
 * @param {{ port?: number, host?: string }} [options] port: one that an earlier call returned, to come back
 * @returns {Promise<number>} the port
 */
async function listenAnew (server, { port = 0, host = '127.0.0.1' } = {}) {
  const own = port === 0 ? await freePort(host) : port
  server.listen(own, host)
  await once(server, 'listening')
  return own
}
