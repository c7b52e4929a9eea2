'use strict'

const fp = require('fastify-plugin')
const { name, version } = require('./package.json')
const { resolveOptions } = require('./lib/config/options')
const { resolveRouteOptions } = require('./lib/config/route-options')
const { Report } = require('./lib/config/report')
const { REQUEST_KEY } = require('./lib/context/keys')
const { NoRequestContext, ownContextManager } = require('./lib/context/request-context')
const { processWide } = require('./lib/context/process-wide')
const { NO_SPAN } = require('./lib/span/unsampled-span')
const { Scope } = require('./lib/span/scope')
const { Tracer } = require('./lib/tracer')
const openApi = require('./lib/instrument/otel-api')
const { fastifyHooks, traceGetter } = require('./lib/instrument/fastify')
const { openOutbound } = require('./lib/instrument/outbound')
const { openStageSpans } = require('./lib/instrument/stage-spans')
const { traceClient } = require('./lib/instrument/trace-client')
const { watchUnrouted } = require('./lib/instrument/unrouted')

const scope = new Scope(name, version)

// One registration per root instance; all scopes of an application share its server.
const { registrations } = processWide

// Under this symbol light-trace/register says that nobody has asked for this application in its code.
const kAutomatic = Symbol.for('light-trace.automatic')

function plugin (app, options, done) {
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
  const earlier = registrations.get(app.server)
  if (earlier === undefined) {
    const registration = openTracer(app, options)
    registrations.set(app.server, registration)
    try {
      trace(app, registration)
    } catch (error) { // a name that is taken: the application does not start, and no onClose of ours is there
      registrations.delete(app.server)
      close(registration)
      throw error
    }
    return registration.waiting
  } else if (earlier.isAutomatic && options[kAutomatic] !== true) {
    replace(earlier, app, openTracer(app, options))
  } else {
    earlier.tracer.report.once('LT_WARN_REGISTERED', 'light-trace is registered twice in this application: the first registration holds')
    if (app.lightTrace === undefined) trace(app, earlier)
  }
  return null
}

function openTracer (app, options) {
  const settings = resolveOptions(options)
  const report = new Report(app.log, settings.logLevel)
  const isAutomatic = options[kAutomatic] === true
  if (!isAutomatic) report.startup(settings.warnings)
  const tracer = new Tracer(settings, report, scope)
  const waiting = openApi.join(tracer, settings.registerGlobals)
  tracer.meet()
  return { app, tracer, waiting, releaseOutbound: openOutbound(tracer), releaseStages: () => {}, isAutomatic, hooks: null, decorator: null }
}

function trace (app, registration) {
  const hooks = fastifyHooks(app, registration.tracer)
  const decorator = decoratorOf(registration.tracer)
  // A child scope traces itself only, and what has no route belongs to none.
  const isRoot = Object.hasOwn(app, 'server')
  let unwatch = () => {}
  app.decorate('lightTrace', decorator)
  if (!app.hasRequestDecorator('trace')) {
    app.decorateRequest('trace', { getter: traceGetter(new NoRequestContext(registration.tracer, NO_SPAN, null, true)) })
  }
  app.addHook('onRoute', ({ config }) => { resolveRouteOptions(config?.trace) })
  if (registration.isAutomatic) {
    Object.assign(registration, { hooks, decorator })
    app.addHook('onRequest', (request, reply, done) => registration.hooks.onRequest(request, reply, done))
    app.addHook('onError', (request, reply, error, done) => registration.hooks.onError(request, reply, error, done))
  } else {
    app.addHook('onRequest', hooks.onRequest)
    app.addHook('onError', hooks.onError)
    registration.releaseStages = openStageSpans(app, registration.tracer)
  }
  app.addHook('onReady', (ready) => {
    open(registration)
    if (isRoot) unwatch = watch(app, registration.tracer, registration.hooks ?? hooks)
    ready()
  })
  app.addHook('onClose', (instance, closed) => {
    registrations.delete(app.server)
    registration.tracer.drained().then(unwatch).then(() => close(registration)).then(() => closed(), closed)
  })
}

function watch (app, { settings, report }, { unrouted }) {
  if (!settings.unrouted || unrouted === undefined) return () => {}
  return watchUnrouted(app.server, unrouted, (error) => report.once('LT_WARN_BUG', `Bug: a request was not traced: ${error?.stack}`))
}

function decoratorOf (tracer) {
  return {
    tracer: tracer.tracerProvider.getTracer(name, version),
    tracerProvider: tracer.tracerProvider,
    flush: (options) => tracer.flush(options),
    stats: () => tracer.snapshot()
  }
}

function open ({ tracer, isAutomatic }) {
  if (isAutomatic) tracer.report.startup(tracer.settings.warnings)
  tracer.open()
}

async function close ({ tracer, releaseOutbound, releaseStages }) {
  releaseStages()
  releaseOutbound()
  openApi.leave(tracer)
  await tracer.close()
}

/** What somebody has written in the application's code counts instead of what light-trace/register has set up. */
function replace (automatic, app, explicit) {
  close({ ...automatic })
  automatic.isAutomatic = false
  if (app === automatic.app) {
    const { tracer, releaseOutbound } = explicit
    Object.assign(automatic, { tracer, releaseOutbound, releaseStages: openStageSpans(app, tracer), hooks: fastifyHooks(app, tracer) })
    Object.assign(automatic.decorator, decoratorOf(tracer))
  } else {
    automatic.hooks = PASS
    trace(app, explicit)
  }
}

const PASS = {
  onRequest: (request, reply, done) => done(),
  onError: (request, reply, error, done) => done()
}

/** The `request.trace` of the running request, or undefined. */
function current () {
  return ownContextManager.active()?.getValue(REQUEST_KEY) ?? openApi.activeManager.active().getValue(REQUEST_KEY)
}

const lightTrace = fp(plugin, { fastify: '>=5.0.0', name: 'light-trace' })
lightTrace.current = current
lightTrace.traceClient = traceClient

module.exports = lightTrace
// Said once more where Node looks for the names that an ES module may import.
module.exports.default = lightTrace
module.exports.lightTrace = lightTrace
module.exports.current = current
module.exports.traceClient = traceClient
