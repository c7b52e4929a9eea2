'use strict'

// node --import light-trace/register app.js
//
// Traces every Fastify application of the process without code changes. The configuration comes from environment variables. If an
// application registers light-trace itself, its own options apply.

const { subscribe } = require('node:diagnostics_channel')
const { retainTickRecord } = require('./lib/runtime/timers.js')

retainTickRecord() // as early as possible, see lib/registration.js

// Published at the end of Fastify's factory, before other code can register anything, so our hooks come first. The rest of the package is
// loaded only then, because most processes and workers under NODE_OPTIONS do not use Fastify.
subscribe('fastify.initialization', ({ fastify }) => {
  try {
    const { OLDEST_FASTIFY, closeLast } = require('./lib/registration.js')
    if (Number.parseInt(fastify.version, 10) >= OLDEST_FASTIFY) {
      closeLast(fastify)
      fastify.register(require('./index.js'), { [Symbol.for('light-trace.automatic')]: true })
    } else warn(`an application is not traced: it uses Fastify ${fastify.version}, but light-trace needs Fastify ${OLDEST_FASTIFY} or later`)
  } catch (error) {
    // An error thrown in a subscriber would end the process.
    warn(`an application is not traced: ${error?.message}`)
  }
})

function warn (message) {
  require('./lib/runtime/report.js').warnProcess(message, 'LT_WARN_REGISTER')
}
