'use strict'

// Loaded into the app that `npx light-trace app.js` starts, before the app. It does what light-trace/register does, with more
// spans than production wants: handlers, and requests that never reach a hook. It also reports to the viewer what the app's
// tracer lost, or that nothing traces the app. Whatever fails here, the app starts.

const { subscribe, unsubscribe } = require('node:diagnostics_channel')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { handlerSpans } = require('../lib/fastify/handler-spans')
const { reportLosses, reportUntraced } = require('./report-losses')

const OLDEST_MAJOR = 5
const AGAIN_MS = 200

const options = { [Symbol.for('light-trace.automatic')]: true, unrouted: true }

guarded(() => {
  const lightTrace = plugin()
  subscribe('fastify.initialization', ({ fastify }) => guarded(() => {
    if (Number.parseInt(fastify.version, 10) < OLDEST_MAJOR) return reportUntraced(`uses Fastify ${fastify.version}, and light-trace traces Fastify ${OLDEST_MAJOR}`)
    fastify.register(lightTrace, options)
    spanHandlers(fastify)
    reportLosses(fastify)
  }))
  subscribe('http.server.request.start', firstRequest)
  takeSignalsOnce()
})

function firstRequest () {
  unsubscribe('http.server.request.start', firstRequest)
  guarded(() => reportUntraced('answers requests without Fastify, so that only what an OpenTelemetry SDK in it sends is seen'))
}

// A supervisor, or a terminal whose keyboard is not our input, sends a signal to a whole group of processes, and each that passes
// it on does so once more. Many apps leave at once at the second. Nobody presses twice so soon.
function takeSignalsOnce () {
  const { emit } = process
  const last = new Map()
  process.emit = function (name, signal, number) {
    if (name !== signal || typeof number !== 'number') return Reflect.apply(emit, this, arguments)
    const now = performance.now()
    const isAgain = now - last.get(name) < AGAIN_MS
    last.set(name, now)
    return isAgain || Reflect.apply(emit, this, arguments)
  }
}

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
