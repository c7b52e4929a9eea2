'use strict'

const fp = require('fastify-plugin')
const { name, version } = require('./package.json')
const { resolveOptions } = require('./lib/config/options')
const { resolveRouteOptions } = require('./lib/config/route-options')
const { Report } = require('./lib/config/report')
const { REQUEST_KEY } = require('./lib/context/keys')
const { RequestContext, ownContextManager } = require('./lib/context/request-context')
const { NO_SPAN } = require('./lib/span/unsampled-span')
const { Scope } = require('./lib/otlp/envelope')
const { Tracer } = require('./lib/tracer')
const { fastifyHooks, traceGetter } = require('./lib/instrument/fastify')
const { openOutbound } = require('./lib/instrument/outbound')
const { watchUnrouted } = require('./lib/instrument/unrouted')

const scope = new Scope(name, version)

// One tracer per root instance; all scopes of an application share its server.
const tracers = new WeakMap()

function plugin (app, options, done) {
  try {
    install(app, options)
  } catch (error) {
    done(error) // avvio does not catch what a plugin with a callback throws
    return
  }
  done()
}

function install (app, options) {
  if (tracers.has(app.server)) {
    const { report } = tracers.get(app.server)
    report.once('LT_WARN_REGISTERED', 'light-trace is registered twice in this application: the first registration holds')
    if (app.lightTrace !== undefined) return
  } else {
    const settings = resolveOptions(options)
    const report = new Report(app.log, settings.logLevel)
    report.startup(settings.warnings)
    tracers.set(app.server, new Tracer(settings, report, scope))
  }
  trace(app, tracers.get(app.server))
}

function trace (app, tracer) {
  const { onRequest, onError, unrouted } = fastifyHooks(app, tracer)
  // A child scope traces itself only, and what has no route belongs to none.
  const isRoot = Object.hasOwn(app, 'server')
  let unwatch = () => {}
  app.decorate('lightTrace', {
    tracer,
    tracerProvider: null,
    flush: (flushOptions) => tracer.flush(flushOptions),
    stats: () => tracer.snapshot()
  })
  if (!app.hasRequestDecorator('trace')) {
    app.decorateRequest('trace', { getter: traceGetter(new RequestContext(tracer, NO_SPAN, null, true)) })
  }
  app.addHook('onRoute', ({ config }) => { resolveRouteOptions(config?.trace) })
  app.addHook('onReady', (ready) => {
    tracer.open()
    if (tracer.settings.unrouted && isRoot) unwatch = watchUnrouted(app.server, unrouted, (error) => tracer.report.once('LT_WARN_BUG', `Bug: a request was not traced: ${error?.stack}`))
    ready()
  })
  app.addHook('onRequest', onRequest)
  app.addHook('onError', onError)
  const releaseOutbound = openOutbound(tracer)
  app.addHook('onClose', (instance, closed) => {
    tracers.delete(app.server)
    tracer.drained().then(unwatch).then(releaseOutbound).then(() => tracer.close()).then(() => closed(), closed)
  })
}

/** The `request.trace` of the running request, or undefined. */
function current () {
  return ownContextManager.active()?.getValue(REQUEST_KEY)
}

const lightTrace = fp(plugin, { fastify: '>=5.0.0', name: 'light-trace' })
lightTrace.current = current

module.exports = lightTrace
// Said once more where Node looks for the names that an ES module may import.
module.exports.default = lightTrace
module.exports.lightTrace = lightTrace
module.exports.current = current
