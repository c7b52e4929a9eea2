'use strict'

// The app that most tests need: it is traced into an in-memory collector and listens on a free loopback port.

const Fastify = require('fastify')
const lightTrace = require('../..')
const { collectorFor } = require('./collector')

/**
 * @param {object} t a tap test: the app is closed at its end
 * @param {object} [options]
 * @param {(app: FastifyInstance) => void | Promise<void>} [options.before] registers plugins before light-trace
 * @param {(app: FastifyInstance) => void | Promise<void>} [options.routes] registers routes after it
 * @param {object} [options.trace] light-trace's options. By default without the code location, which differs in each test, and without
 *   slow-request detection, since any request may be slow on a busy machine
 * @param {object} [options.fastify] Fastify's options
 * @param {object | false} [options.listen] false: only inject() is used
 * @returns {Promise<{ app, collector, origin: string, port: number }>}
 */
async function tracedApp (t, { before, routes, trace = {}, fastify = {}, listen = {} } = {}) {
  const { collector, options } = await collectorFor(t)
  const app = Fastify({ forceCloseConnections: true, ...fastify })
  t.teardown(() => app.close())
  await before?.(app)
  await app.register(lightTrace, { ...('spanProcessors' in trace ? {} : options), registerGlobals: false, codeLocation: false, slow: false, ...trace })
  await routes?.(app)
  if (listen === false) {
    await app.ready()
    return { app, collector, origin: '', port: 0 }
  }
  const origin = await app.listen('path' in listen ? listen : { port: 0, host: '127.0.0.1', ...listen })
  const address = app.server.address()
  return { app, collector, origin, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

module.exports = { tracedApp }
