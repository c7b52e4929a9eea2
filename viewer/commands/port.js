'use strict'

// Opens the viewer on the ports to which all exporters send by default. If one is taken, it reports that and tries the next port.

const { Client, DEFAULT_PORT } = require('./client')

const DEFAULT_GRPC_PORT = 4317
const TRIES_MAX = 20

/**
 * @param {() => import('../http/server').Viewer} make
 * @param {{ port?: number, host?: string }} options
 * @param {(message: string) => void} say
 * @param {{ own?: string }} [join] whether another viewer that has the port may be used instead, unless the option `own` asks for a new one
 * @returns {Promise<{ viewer?: import('../http/server').Viewer, port: number, joined?: number }>} joined: the process id of
 *   another viewer that has the port
 * @throws the error of listen, if no other port can help
 */
async function listenFrom (make, { port: wanted = DEFAULT_PORT, host }, say, join) {
  const holder = new Client({ port: wanted, host })
  for (let port = wanted, tries = 1; ; port++, tries++) {
    const viewer = make()
    try {
      const taken = await viewer.listen(port, host)
      if (port !== wanted) {
        const pid = await holder.holder()
        const hint = pid === undefined || join?.own === undefined ? '' : `. Without --${join.own}, the app would send to that viewer`
        say(`port ${wanted} is used by ${await holderOf(holder, pid)}. This viewer uses port ${taken} and does not receive what is sent to ${wanted}${hint}`)
      }
      return { viewer, port: taken }
    } catch (error) {
      const joined = join !== undefined && join.own === undefined && error.code === 'EADDRINUSE' && port === wanted ? await holder.holder() : undefined
      if (joined !== undefined) return { port, joined }
      if (error.code !== 'EADDRINUSE' || tries === TRIES_MAX || port === 65_535) throw explained(error, port, host)
    }
  }
}

/**
 * Opens the viewer's port for gRPC, in the same way: it may be taken. Unless it was asked for, the viewer goes on without it.
 * @param {import('../http/server').Viewer} viewer listening
 * @returns {Promise<number | undefined>} the port
 * @throws the error of listen, if the user named a port and no other can help
 */
async function listenForGrpc (viewer, { 'grpc-port': named, port: httpPort, host }, say) {
  const wanted = named ?? (httpPort === 0 ? 0 : DEFAULT_GRPC_PORT) // 0: any, for both
  for (let port = wanted, tries = 1; ; port++, tries++) {
    if (port === DEFAULT_PORT && port !== named) continue // apps send by HTTP to it
    try {
      const taken = await viewer.listenGrpc(port, host)
      if (port !== wanted) say(`port ${wanted} is in use: this viewer receives gRPC on ${taken}, and does not see what is sent to ${wanted}`)
      return taken
    } catch (error) {
      if (error.code === 'EADDRINUSE' && tries < TRIES_MAX && port < 65_535) continue
      const problem = explained(error, port, host, '--grpc-port')
      if (named === undefined) return say(`nothing is received over gRPC: ${problem.message}`)
      await viewer.close()
      throw problem
    }
  }
}

function explained (error, port, host, option = '--port') {
  const reasons = {
    EADDRINUSE: `all ports up to ${port} are in use. Choose another with ${option}`,
    EACCES: `no permission to listen on port ${port}. Choose a port above 1023 with ${option}`,
    EADDRNOTAVAIL: `${host} is not an address of this machine`,
    ENOTFOUND: `${host} is not an address of this machine`
  }
  return Object.assign(new Error(reasons[error.code] ?? error.message), { expected: reasons[error.code] !== undefined })
}

async function holderOf (client, pid) {
  if (pid !== undefined) return `another light-trace (process ${pid})`
  const isReceiver = await client.isAnswered('/v1/traces', { method: 'POST', headers: { 'content-type': 'application/x-protobuf' } })
  return isReceiver ? 'an OTLP receiver, such as a collector' : 'another program that is not an OTLP receiver'
}

module.exports = { listenFrom, listenForGrpc }
