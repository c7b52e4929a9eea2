'use strict'

// node --import light-trace/register app.js
//
// Traces every Fastify application of the process, configured by the environment alone, without a line in its
// code. An application that registers light-trace itself is traced as it says there.

const { subscribe } = require('node:diagnostics_channel')
const { retainTickRecord } = require('./lib/runtime/timers.js')

retainTickRecord() // as early as can be, see lib/registration.js

// Published at the end of Fastify's factory, before anybody else can register anything: our hooks come first. All else is loaded here:
// most processes and workers under NODE_OPTIONS have no Fastify.
subscribe('fastify.initialization', ({ fastify }) => {
  try {
    const { OLDEST_FASTIFY, closeLast } = require('./lib/registration.js')
    if (Number.parseInt(fastify.version, 10) >= OLDEST_FASTIFY) {
      closeLast(fastify)
      fastify.register(require('./index.js'), { [Symbol.for('light-trace.automatic')]: true })
    } else warn(`an application is not traced: it uses Fastify ${fastify.version}, but light-trace needs Fastify ${OLDEST_FASTIFY} or later`)
  } catch (error) {
    // What a subscriber throws would end the process.
    warn(`an application is not traced: ${error?.message}`)
  }
})

function warn (message) {
  require('./lib/runtime/report.js').warnProcess(message, 'LT_WARN_REGISTER')
}
