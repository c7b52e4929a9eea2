'use strict'

// The plugin: options -> tracer -> decorators, hooks -> close. The details are in lib/registration.js.

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
    done(error) // avvio does not catch errors that a plugin with a callback throws
    return
  }
  if (waiting === null) done()
  else waiting.then(() => done(), done)
}

/** @returns {Promise<void> | null} a promise if the caller must wait, else null */
function install (app, options) {
  const registration = registrationFor(app, options) // options -> tracer
  if (!registration.isIn(app)) {
    try {
      decorate(app, registration)
      addHooks(app, registration)
    } catch (error) { // a decorator's name is taken: the application does not start, and our onClose hook does not exist yet
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

// Each hook's name shows that it is ours, for example in the error when a plugin times out.
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

/** The `request.trace` of the active request, or undefined. */
function current () {
  return ownContextManager.active()?.getValue(REQUEST_KEY) ?? activeManager.active().getValue(REQUEST_KEY)
}

// The modules of the following functions are loaded on first use.

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
// Assigned one by one, so that Node detects the names that an ES module can import.
module.exports.default = lightTrace
module.exports.lightTrace = lightTrace
module.exports.current = current
module.exports.traceClient = traceClient
module.exports.flushAfter = flushAfter
module.exports.run = run
