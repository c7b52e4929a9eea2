'use strict'

// A registration traces an application from `register` to its close. This file also decides which of several registrations applies.

const { subscribe } = require('node:diagnostics_channel')
const { name, version } = require('../package.json')
const { resolveOptions, resolveRouteOptions } = require('./config/options.js')
const { Report } = require('./runtime/report.js')
const { retainTickRecord } = require('./runtime/timers.js')
const { NoRequestContext } = require('./context/request-context.js')
const { processState, guarded } = require('./runtime/process-state.js')
const { INVALID_SPAN } = require('./span/child-span.js')
const { Scope, SCHEMA_URL } = require('./span/recording-span.js')
const { Tracer } = require('./tracer.js')
const features = require('./features.js')
const apiGlobals = require('./otel/api-globals.js')
const { fastifyHooks } = require('./fastify/hooks.js')
const { ownHook, traceGetterOf } = require('./fastify/keys.js')
const { noteDeclaration, warnAboutRoute } = require('./fastify/routes.js')
const { openOutbound } = require('./outbound/index.js')

const OLDEST_FASTIFY = 5 // major version

const scope = new Scope(name, version, SCHEMA_URL)

// One registration per root instance. The key is the server, which all scopes of an application share.
const { registrations } = processState

retainTickRecord() // as early as possible, because V8 does not relearn what it has dropped, see lib/runtime/timers.js

const closing = new WeakSet() // the servers of applications that have the hook of `closeLast`

subscribe('fastify.initialization', guarded(({ fastify }) => closeLast(fastify)))

/**
 * Closes an application's registration after its other onClose hooks, so that their spans are exported. The onClose hook that is added first
 * runs last, so ours is added when the application is created. Registration would be too late: without `await app.register(lightTrace)`, the
 * application adds its own hooks before its plugins are loaded. If the application was created before this file was loaded, it gets the
 * hook with its registration.
 */
function closeLast ({ server, onClose }) {
  if (closing.has(server)) return
  closing.add(server)
  onClose(async function lightTraceOnClose () { await registrations.get(server)?.close() })
}

// Marks the options of light-trace/register.
const kAutomatic = Symbol.for('light-trace.automatic')

// The first registration under an app's root applies. Exception: a registration in the app's code replaces that of light-trace/register.
function registrationFor (app, options) {
  const earlier = registrations.get(app.server)
  if (earlier !== undefined && (!earlier.isAutomatic || options[kAutomatic] === true)) {
    earlier.tracer.report.warn('LT_WARN_REGISTERED', 'light-trace is registered twice in this application: the options of the first registration apply, later ones are ignored')
    return earlier
  }
  const registration = new Registration(app, options)
  registrations.set(app.server, registration)
  const handed = earlier?.retire() ?? {}
  try {
    registration.tracer.attachFeatures(app)
  } catch (error) { // for example, a level that the logger does not have
    registration.abandon(app)
    throw error
  }
  earlier?.follow(registration)
  registration.takeOver(handed)
  return registration
}

class Registration {
  #hooks = null
  #replacement = null // the registration that replaces this one, if it has the same scope
  #isOpen = false
  #notesRoutes // whether to record where in the code a route is declared
  #closeOutbound

  constructor (app, options) {
    const settings = resolveOptions(options)
    const report = new Report(app.log, settings.logLevel)
    const tracer = new Tracer(settings, report, scope)
    this.app = app
    this.tracer = tracer
    this.isAutomatic = options[kAutomatic] === true
    this.decoratesRequest = false // whether `request.trace` is ours
    this.#notesRoutes = settings.codeLocation
    if (!this.isAutomatic) report.startup(settings)
    this.waiting = apiGlobals.openApp(tracer, settings.registerGlobals)
    tracer.observer?.registry.addProvider(apiGlobals.meterFacade())
    tracer.useGlobals()
    this.#closeOutbound = openOutbound(tracer)
    this.decorator = decoratorOf(tracer) // `app.lightTrace`
    this.noTrace = new NoRequestContext(tracer, INVALID_SPAN, null, true)
    this.traceGetter = traceGetterOf(this.noTrace) // `request.trace`
    if (this.isAutomatic) this.takeOver(this.#handOver()) // keeps what its options enable, whatever a route's options are, as after a replacement
  }

  /** Whether this registration already traces `app` or an enclosing scope. */
  isIn (app) { return app.lightTrace === this.decorator }

  /** Only a warning, because spans and `lightTrace.current()` work without the name. */
  warnTraceTaken () {
    this.tracer.report.warn('LT_WARN_DECORATOR', 'another plugin already defines request.trace: register light-trace first, or use lightTrace.current()')
  }

  /** The hooks for a scope. Hooks of a child scope trace only that scope. */
  hooksFor (app) {
    const hooks = fastifyHooks(app, this.tracer, this.noTrace)
    return this.isAutomatic ? this.#exchangeable(hooks) : hooks
  }

  /** Hooks whose functions can be replaced later. The replacement keeps their position, the first of all hooks. */
  #exchangeable (hooks) {
    this.#hooks = hooks
    const registration = this
    return {
      onRequest: ownHook(function lightTraceOnRequest (request, reply, done) { registration.#hooks.onRequest(request, reply, done) }, 'request'),
      onError: ownHook(function lightTraceOnError (request, reply, error, done) { registration.#hooks.onError(request, reply, error, done) }, 'request')
    }
  }

  /** Called for each declared route. Invalid options throw at the declaration. */
  declared (route, scope) {
    features.attachForRoute(this.tracer, resolveRouteOptions(route.config?.trace))
    warnAboutRoute(route, this.tracer.report, scope)
    if (this.#notesRoutes) noteDeclaration(route)
  }

  /** Adds the hooks and routes of features. */
  install (app) {
    for (const part of this.tracer.parts.values()) part.install?.(app, app === this.app)
  }

  open () {
    if (this.#replacement !== null) return this.#replacement.open()
    if (this.#isOpen) return
    this.#isOpen = true
    if (this.isAutomatic) this.tracer.report.startup(this.tracer.settings)
    this.tracer.open()
  }

  /** Never rejects. */
  async close () {
    registrations.delete(this.app.server)
    await this.tracer.drained()
    await this.#end()
  }

  /** Ends the registration if `app` cannot start, for example because a decorator's name is taken. */
  abandon (app) {
    if (app !== this.app) return
    registrations.delete(app.server)
    this.#end()
  }

  /** Ends the registration before the first request. Returns the waiting data of the tracer's parts, by their names. */
  retire () {
    const handed = this.#handOver()
    this.#end()
    this.#replacement = this.#hooks = INACTIVE
    this.#notesRoutes = false
    return handed
  }

  /**
   * Delegates to the registration in the application's code, if that has the same scope. It may come from another copy of this package, so
   * only its public members can be used.
   */
  follow (explicit) {
    const { app } = this
    explicit.decoratesRequest = this.decoratesRequest
    if (explicit.app !== app) return // it adds its own hooks to its own scope
    this.#replacement = explicit
    this.#hooks = explicit.hooksFor(app)
    this.#notesRoutes = explicit.tracer.settings.codeLocation
    explicit.decorator = Object.defineProperties(this.decorator, Object.getOwnPropertyDescriptors(explicit.decorator))
    explicit.install(app)
  }

  #handOver () { return Object.fromEntries(Array.from(this.tracer.parts, ([name, part]) => [name, part.handOver?.()])) }

  takeOver (handed) {
    for (const [name, one] of Object.entries(handed)) if (one !== undefined) features.heir(this.tracer, name)?.takeOver(one)
  }

  #end () {
    this.#closeOutbound()
    apiGlobals.closeApp(this.tracer)
    return this.tracer.close()
  }
}

// Used if the code registers light-trace only in a child scope. The rest of the application is not traced then.
const INACTIVE = {
  onRequest: (request, reply, done) => done(),
  onError: (request, reply, error, done) => done(),
  open: () => {}
}

function decoratorOf (tracer) {
  const decorator = {
    tracer: tracer.tracerProvider.getTracer(name, version),
    tracerProvider: tracer.tracerProvider,
    flush: (options) => tracer.flush(options),
    stats: () => tracer.snapshot()
  }
  features.addSurface(decorator, tracer)
  return decorator
}

module.exports = { OLDEST_FASTIFY, registrationFor, closeLast }
