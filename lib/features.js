'use strict'

// The table of features. A feature is code that an option turns on, or that many applications never use. Each feature is a folder or
// a file in lib/features. The core names no feature: it calls the seam functions below the table. Only this file loads features, and
// only when they are needed. `node scripts/without.js NAME` removes a feature from a copy of the package and tests the rest.
//
// A row has `load`, and these members where they apply:
//
//   asked (settings)                whether the application uses it. If so, `attach(tracer)` of its file creates a part of the tracer
//   wants: 'app'                    calls `attach(tracer, app)`, and only once the application has its tracer
//   routeAsks (options)             whether a route uses it, from its config.trace
//   inherits                        a registration also uses it if the registration that it replaces did
//   output (settings, foreign)      whether ended spans go to it. If so, `output(tracer, foreign, suppress)` of its file returns the output
//   beside (settings)               whether it receives spans in addition to the output. If so, `beside(tracer, output)` of its file adds it to the ExportMode
//   propagator (name)               whether it has this propagator of OTEL_PROPAGATORS. If so, `propagator(name, report)` of its file creates it
//   interop, started, shrinker      its file has the function of this name, for the seam of this name
//   calls                           its file has the tables of library calls
//   environment                     its file reads the file of OTEL_CONFIG_FILE
//   surface (tracer, load)          members of app.lightTrace, present whether or not the feature is used
//   uses                            the features that it requires
//
// A part may have these members. Parts are called in the order of the table:
//
//   install (app, isRoot)       adds hooks and routes to the application, or to a scope that registers light-trace
//   atFirstRequest (hooks, request, options)  runs at the first request of a route: `hooks` is Fastify's own object for the route
//   route (info)                runs after that, for each method of the route
//   follow (requests, app)      takes the RequestStart of an application or a scope
//   wrapEnd (endRequest)        returns a replacement for the function that ends a request
//   decided ()                  runs when the output of spans is decided
//   open ()                     runs when spans can be created
//   isWaiting, handOver (), takeOver (handed)  what waits for `open`, and how it moves to another registration
//   settle ()                   runs before a flush and before the close: passes on the spans that wait for the next turn of the event loop
//   flush (options)             runs with the tracer's own flush
//   stats ()                    returns members of stats()
//   stop (), close ()           run before the last spans are sent, and while they are sent

/** @type {Record<string, any>} */
const FEATURES = { // if several rows match a seam, the first one is used: `sdk` comes before `console` by decision D6
  omit: { // before every feature that reads tracer.omit. It wraps pipeline.ended first, so it runs last
    asked: ({ omitAttributes }) => omitAttributes.length > 0,
    load: () => require('./features/omit.js')
  },
  metrics: {
    asked: isSet('metrics'),
    load: () => require('./features/metrics/app-metrics.js'),
    surface: ({ parts }, load) => ({
      metrics: async (options) => parts.get('metrics')?.text(options) ?? '',
      get meterProvider () { return parts.get('metrics')?.meterProvider ?? load().withoutMetrics() }
    })
  },
  keep: {
    asked: isSet('keep', 'recorder', 'configFile'), // the file may set `keep`
    load: () => require('./features/keep/keep.js'),
    surface: ({ parts, report, settings }, load) => ({
      snapshot: async (options) => parts.get('keep')?.snapshot(options) ?? load().nothingToTake(report, settings.disabled ? 'tracing is switched off' : 'the option `keep.recorder` is not set')
    })
  },
  accounts: {
    asked: (settings) => isSlowSaid(settings) || settings.configFile !== null, // the file may set `slow`
    routeAsks: isSlowSaid,
    load: () => require('./features/accounts.js')
  },
  inherit: { // after `omit`, so that it runs before it when a span ends: inherited attributes are omitted too
    asked: ({ inheritAttributes }) => inheritAttributes.length > 0,
    load: () => require('./features/inherit.js')
  },
  'repeated-calls': {
    asked: () => true, // attaching it at the first call would be too late
    load: () => require('./features/repeated-calls.js')
  },
  'live-file': {
    asked: isSet('configFile'),
    load: () => require('./features/live-file.js')
  },
  'blocked-loop': {
    asked: isSet('blockedLoop'),
    load: () => require('./features/blocked-loop/blocked-loop.js'),
    uses: ['accounts']
  },
  logs: {
    asked: isSet('exportedLogs'),
    wants: 'app',
    load: () => require('./features/logs/app-logs.js')
  },
  'log-ids': {
    // Exported records need their request even if `logIds` is off.
    started: ({ logIds, exportedLogs }, { log }) => (logIds || exportedLogs !== null) && typeof log?.setBindings === 'function' && typeof log.child === 'function', // only pino has both; Fastify's default logger does nothing
    load: () => require('./features/log-ids.js')
  },
  unrouted: {
    asked: isSet('unrouted'),
    load: () => require('./features/unrouted.js')
  },
  serverless: {
    asked: ({ platform }) => platform === 'vercel' || platform === 'cloud_run',
    load: () => require('./features/serverless.js')
  },
  jobs: {
    load: () => require('./features/jobs.js'),
    surface: (tracer, load) => ({ run: (carrier, options, fn) => load().run(carrier, options, fn, tracer) })
  },
  stages: {
    asked: asksForStages,
    routeAsks: asksForStages,
    inherits: true,
    load: () => require('./features/stages.js')
  },
  sdk: {
    output: ({ exporter }, foreign) => exporter.idle || foreign !== null,
    beside: ({ exporter, spanProcessors }) => !exporter.idle && spanProcessors?.length > 0,
    interop: true,
    load: () => require('./features/sdk/interop.js')
  },
  b3: {
    propagator: (name) => name === 'b3' || name === 'b3multi',
    load: () => require('./features/b3.js')
  },
  thinning: {
    shrinker: true,
    load: () => require('./features/thinning/thinning.js')
  },
  console: {
    output: ({ exporter: { kind } }) => kind === 'console' || kind === 'otlp/stdout',
    load: () => require('./features/console.js')
  },
  'trace-client': {
    load: () => require('./features/trace-client.js'),
    uses: ['libraries']
  },
  libraries: {
    calls: true,
    load: () => require('./features/libraries/index.js')
  },
  'declarative-file': {
    environment: true,
    load: () => require('./features/declarative-file.js')
  },
  testing: { // light-trace/testing
    load: () => require('./features/testing/testing.js'),
    uses: ['console', 'jobs', 'sdk']
  }
}

/** Returns a test for whether at least one of these options is set. */
function isSet (...options) { return (settings) => options.some((option) => Boolean(settings[option])) }

function isSlowSaid ({ slow }) { return slow?.afterMs < Infinity }

function asksForStages ({ spans }) { return spans !== null && (spans.handler || spans.hooks.length > 0) }

const rows = Object.entries(FEATURES)

/** Loads the first feature that matches a seam; undefined if none does. */
function first (seam, ...args) {
  return rows.find(([, row]) => typeof row[seam] === 'function' ? row[seam](...args) : row[seam] === true)?.[1].load()
}

/** Adds the parts that the settings ask for to `tracer.parts`. @param {object} [app] for the rows with `wants: 'app'`, once it has the tracer */
function attach (tracer, app = undefined) {
  for (const [name, { asked, wants, load }] of rows) {
    const isDue = (wants === 'app') === (app !== undefined)
    if (isDue && asked?.(tracer.settings)) tracer.parts.set(name, load().attach(tracer, app))
  }
}

/** Adds the parts that a route asks for: when it is declared, or at its first request if it was declared before the plugin loaded. */
function attachForRoute (tracer, options) {
  for (const [name, { routeAsks }] of rows) if (routeAsks?.(options)) partOf(tracer, name)
}

/** The part that takes over from the same part of an earlier registration; undefined if the feature is not used. */
function heir (tracer, name) { return FEATURES[name]?.inherits ? partOf(tracer, name) : tracer.parts.get(name) }

function partOf (tracer, name) {
  const { parts, settings } = tracer
  if (!parts.has(name) && !settings.disabled) parts.set(name, FEATURES[name].load().attach(tracer))
  return parts.get(name)
}

/** Where ended spans go; null: to a collector. See exportMode() in tracer.js. */
function outputOf (tracer, foreign, suppress) { return first('output', tracer.settings, foreign)?.output(tracer, foreign, suppress) ?? null }

/** Adds a second receiver of spans to an ExportMode, if the settings have one. */
function besideOf (tracer, output) { if (!tracer.settings.disabled) first('beside', tracer.settings)?.beside(tracer, output) }

/** Lets another tracer provider, context manager or instrumentation take part in requests; null without the feature. */
function interopOf (tracer) { return first('interop')?.interop(tracer) ?? null }

/** Creates a propagator other than W3C's; undefined if no feature has it. */
function propagatorOf (name, report) { return first('propagator', name)?.propagator(name, report) }

/** Creates the object that shrinks the chunks of a full buffer, see ChunkBuffer; null without the feature. */
function shrinkerOf (buffer, onGone, onFailed) { return first('shrinker')?.shrinker(buffer, onGone, onFailed) ?? null }

/** The object that is notified of each started request, or null. */
function startedOf (app, tracer) { return first('started', tracer.settings, app)?.started(app, tracer) ?? null }

/** The variables that are equivalent to the file of OTEL_CONFIG_FILE; undefined without the feature. */
function environmentOf (file, values) { return first('environment')?.readConfiguration(file, values) }

/** Whether there are tables of library calls. Without them, nothing subscribes to the libraries' channels. */
const hasCalls = rows.some(([, row]) => row.calls)
let tables // of library calls, loaded at the first call

/** The tables of library calls. Some libraries need them for each call. */
function calls () { return (tables ??= first('calls')) }

/** Adds the features' members to `app.lightTrace`. */
function addSurface (decorator, tracer) {
  for (const [, { surface, load }] of rows) if (surface !== undefined) Object.defineProperties(decorator, Object.getOwnPropertyDescriptors(surface(tracer, load)))
}

/** Loads a feature for the package's own exports. */
function load (name) { return FEATURES[name].load() }

module.exports = { FEATURES, attach, attachForRoute, heir, outputOf, besideOf, interopOf, propagatorOf, shrinkerOf, startedOf, environmentOf, hasCalls, calls, addSurface, load }
