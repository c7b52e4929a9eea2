'use strict'

// How an application is traced, from `register` to its close, and which of several registrations holds.

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

const OLDEST_FASTIFY = 5 // its major version

const scope = new Scope(name, version, SCHEMA_URL)

// One registration per root instance; all scopes of an application share its server.
const { registrations } = processState

retainTickRecord() // as early as can be: what V8 has forgotten it does not learn again

const closing = new WeakSet() // the servers of the applications that have the hook of `closeLast`

subscribe('fastify.initialization', guarded(({ fastify }) => closeLast(fastify)))

/**
 * Closes an application's registration behind its onClose hooks, so that what they do is delivered. The hook that was added first runs
 * last. So it is added when the application is made: with `app.register(lightTrace)` without await, the application's own hooks are
 * there before its plugins are loaded. An application that was made before this file was loaded gets it with its registration.
 */
function closeLast ({ server, onClose }) {
  if (closing.has(server)) return
  closing.add(server)
  onClose(async function lightTraceOnClose () { await registrations.get(server)?.close() })
}

// In the options of light-trace/register.
const kAutomatic = Symbol.for('light-trace.automatic')

// The first registration under an app's root holds, except that one in its code counts instead of that of light-trace/register.
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
  } catch (error) { // a level that the logger has not
    registration.abandon(app)
    throw error
  }
  earlier?.follow(registration)
  registration.takeOver(handed)
  return registration
}

class Registration {
  #hooks = null
  #replacement = null // the registration that counts instead of this one in its own scope
  #isOpen = false
  #notesRoutes // whether the place where a route is declared is noted
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
    if (this.isAutomatic) this.takeOver(this.#handOver()) // what it asks for it has whatever a route says, as after a replacement
  }

  /** Whether `app` or a scope around it is traced by this registration already. */
  isIn (app) { return app.lightTrace === this.decorator }

  /** The application goes on: spans and `lightTrace.current()` do not need the name. */
  warnTraceTaken () {
    this.tracer.report.warn('LT_WARN_DECORATOR', 'another plugin already defines request.trace: register light-trace first, or use lightTrace.current()')
  }

  /** A child scope's hooks trace that scope only. */
  hooksFor (app) {
    const hooks = fastifyHooks(app, this.tracer, this.noTrace)
    return this.isAutomatic ? this.#exchangeable(hooks) : hooks
  }

  /** Hooks that can be replaced: Fastify keeps those that it was given first, and with them the first place among all hooks. */
  #exchangeable (hooks) {
    this.#hooks = hooks
    const registration = this
    return {
      onRequest: ownHook(function lightTraceOnRequest (request, reply, done) { registration.#hooks.onRequest(request, reply, done) }, 'request'),
      onError: ownHook(function lightTraceOnError (request, reply, error, done) { registration.#hooks.onError(request, reply, error, done) }, 'request')
    }
  }

  /** Sees a route that is declared. Wrong options throw where they stand. */
  declared (route, scope) {
    features.attachForRoute(this.tracer, resolveRouteOptions(route.config?.trace))
    warnAboutRoute(route, this.tracer.report, scope)
    if (this.#notesRoutes) noteDeclaration(route)
  }

  /** Adds what features have of hooks and routes. */
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

  /** Ends where `app` does not start, because a decorator's name is taken in it. */
  abandon (app) {
    if (app !== this.app) return
    registrations.delete(app.server)
    this.#end()
  }

  /** Ends, before a request has come. Returns what waits in parts of the tracer, by their names. */
  retire () {
    const handed = this.#handOver()
    this.#end()
    this.#replacement = this.#hooks = INACTIVE
    this.#notesRoutes = false
    return handed
  }

  /**
   * Does what the registration in the application's code does, as far as all that belongs to one. That one may be of another copy of
   * this package, so that only its methods are there.
   */
  follow (explicit) {
    const { app } = this
    explicit.decoratesRequest = this.decoratesRequest
    if (explicit.app !== app) return // its own scope gets its own
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

// Where the code registers light-trace in a child scope only, the rest of the application is not traced.
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
