'use strict'

// Opens the viewer on the port to which all exporters send by default. If the port is taken, it reports which program has it and tries the
// next port.

const { Client, DEFAULT_PORT } = require('./client')

const TRIES_MAX = 20

/**
 * @param {() => import('../http/server').Viewer} make
 * @returns {Promise<{ viewer?: import('../http/server').Viewer, port: number, joined?: number }>} joined: the process id of
 *   another viewer that has the port
 * @throws the error of listen, if no other port can help
 */
async function listenFrom (make, { port: wanted = DEFAULT_PORT, host }, say, mayJoin = false) {
  const holder = new Client({ port: wanted, host })
  for (let port = wanted, tries = 1; ; port++, tries++) {
    const viewer = make()
    try {
      const taken = await viewer.listen(port, host)
      if (port !== wanted) say(`port ${wanted} is used by ${await holderOf(holder)}. This viewer uses port ${taken} and does not receive what is sent to ${wanted}`)
      return { viewer, port: taken }
    } catch (error) {
      const joined = mayJoin && error.code === 'EADDRINUSE' && port === wanted ? await holder.holder() : undefined
      if (joined !== undefined) return { port, joined }
      if (error.code !== 'EADDRINUSE' || tries === TRIES_MAX || port === 65_535) throw explained(error, port, host)
    }
  }
}

function explained (error, port, host) {
  const reasons = {
    EADDRINUSE: `all ports up to ${port} are in use. Choose another with --port`,
    EACCES: `no permission to listen on port ${port}. Choose a port above 1023 with --port`,
    EADDRNOTAVAIL: `${host} is not an address of this machine`,
    ENOTFOUND: `${host} is not an address of this machine`
  }
  return Object.assign(new Error(reasons[error.code] ?? error.message), { expected: reasons[error.code] !== undefined })
}

async function holderOf (client) {
  const pid = await client.holder()
  if (pid !== undefined) return `another light-trace (process ${pid})`
  const isReceiver = await client.isAnswered('/v1/traces', { method: 'POST', headers: { 'content-type': 'application/x-protobuf' } })
  return isReceiver ? 'an OTLP receiver, such as a collector' : 'another program that is not an OTLP receiver'
}

module.exports = { listenFrom }
