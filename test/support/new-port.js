'use strict'

// light-trace logs some things once per address and process. The system may give a new server the port of an earlier one in the same
// process, and the test of the new server would then wait for a line that was logged before.

const { once } = require('node:events')

const given = new Set()

module.exports = { listenAnew }

/**
 * Listens on a port that no earlier call in this process returned.
 * @param {import('node:net').Server} server
 * @param {{ port?: number, host?: string }} [options] port: instead of a new one, to come back
 * @returns {Promise<number>} the port
 */
async function listenAnew (server, { port: wanted = 0, host = '127.0.0.1' } = {}) {
  for (;;) {
    server.listen(wanted, host)
    await once(server, 'listening')
    const { port } = server.address()
    if (port === wanted || !given.has(port)) {
      given.add(port)
      return port
    }
    await new Promise((resolve) => server.close(resolve))
  }
}
