'use strict'

// Loaded into the app that `npx light-trace app.js` starts, before the app. It does what light-trace/register does, with more
// spans than production wants: handlers, and requests that never reach a hook. It also reports to the viewer what the app's
// tracer lost. Whatever fails here, the app starts.

const { subscribe } = require('node:diagnostics_channel')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { handlerSpans } = require('../lib/fastify/handler-spans')
const { reportLosses } = require('./report-losses')

const OLDEST_MAJOR = 5

const options = { [Symbol.for('light-trace.automatic')]: true, unrouted: true }

guarded(() => {
  const lightTrace = plugin()
  subscribe('fastify.initialization', ({ fastify }) => guarded(() => {
    if (Number.parseInt(fastify.version, 10) < OLDEST_MAJOR) return
    fastify.register(lightTrace, options)
    spanHandlers(fastify)
    reportLosses(fastify)
  }))
})

// What a preload or a subscriber throws would end the process.
function guarded (fn) {
  try {
    fn()
  } catch (error) {
    process.emitWarning(`an application is not traced: ${error?.message}`, { type: 'LightTraceWarning', code: 'LT_WARN_REGISTER' })
  }
}

// Not by the option `spans.handler`: a plugin is loaded after the routes that an app adds at once.
function spanHandlers (fastify) {
  const handlers = handlerSpans()
  fastify.addHook('onRoute', (route) => guarded(() => handlers.want(route)))
  fastify.addHook('onClose', (closed, done) => {
    handlers.release()
    done()
  })
}

// The app's own copy, if it has one: two would be two tracers.
function plugin () {
  try {
    return createRequire(join(process.cwd(), 'package.json'))('light-trace')
  } catch {
    return require('../index')
  }
}
