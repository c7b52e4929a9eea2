'use strict'

// The plugin: options -> tracer -> decorators, hooks -> close. lib/registration.js has the how.

const fp = require('fastify-plugin')
const { REQUEST_KEY } = require('./lib/context/trace-context.js')
const { misused, ownContextManager } = require('./lib/context/request-context.js')
const { load } = require('./lib/features.js')
const { activeManager } = require('./lib/otel/api-globals.js')
const { registrationFor, closeLast } = require('./lib/registration.js')

function plugin (app, options, done) {
  if (typeof app?.addHook !== 'function' || typeof done !== 'function') {
    throw misused('lightTrace is the plugin itself, so register it without calling it: await app.register(lightTrace, { ... })')
  }
  let waiting
  try {
    waiting = install(app, options)
  } catch (error) {
    done(error) // avvio does not catch what a plugin with a callback throws
    return
  }
  if (waiting === null) done()
  else waiting.then(() => done(), done)
}

/** @returns {Promise<void> | null} where there is something to wait for */
function install (app, options) {
  const registration = registrationFor(app, options) // options -> tracer
  if (!registration.isIn(app)) {
    try {
      decorate(app, registration)
      addHooks(app, registration)
    } catch (error) { // a name that is taken: the application does not start, and no onClose of ours is there
      registration.abandon(app)
      throw error
    }
  }
  return registration.waiting
}

function decorate (app, registration) {
  app.decorate('lightTrace', registration.decorator)
  if (!app.hasRequestDecorator('trace')) {
    app.decorateRequest('trace', { getter: registration.traceGetter })
    registration.decoratesRequest = true
  } else if (!registration.decoratesRequest) registration.warnTraceTaken()
}

// Each hook has a name that shows whose it is, as where the application does not start in time.
function addHooks (app, registration) {
  const { onRequest, onError } = registration.hooksFor(app)
  app.addHook('onRoute', function lightTraceOnRoute (route) {
    registration.declared(route, this)
  })
  app.addHook('onRequest', onRequest)
  app.addHook('onError', onError)
  registration.install(app)
  app.addHook('onReady', function lightTraceOnReady (ready) {
    registration.open()
    ready()
  })
  closeLast(app)
}

/** The `request.trace` of the running request, or undefined. */
function current () {
  return ownContextManager.active()?.getValue(REQUEST_KEY) ?? activeManager.active().getValue(REQUEST_KEY)
}

// What follows is loaded by its users only.

function traceClient (client) {
  return load('trace-client').traceClient(client)
}

function flushAfter (app, handler, options) {
  return load('serverless').flushAfter(app, handler, options)
}

function run (carrier, options, fn) {
  return load('jobs').run(carrier, options, fn)
}

const lightTrace = fp(plugin, { fastify: '>=5', name: 'light-trace' })

module.exports = lightTrace
// One by one, as Node looks for the names that an ES module may import.
module.exports.default = lightTrace
module.exports.lightTrace = lightTrace
module.exports.current = current
module.exports.traceClient = traceClient
module.exports.flushAfter = flushAfter
module.exports.run = run
