'use strict'

// The table of features: what an option switches on, or what many applications never meet. Each is a folder or a file of lib/features.
// The core names none of them. It asks this file at its seams, below the table; and only this file loads them, where they are asked for.
// `node scripts/without.js NAME` takes one out of a copy and runs what is left.
//
// A row has `load`, and of the others what concerns it:
//
//   asked (settings)                whether an application asks for it: then `attach(tracer)` of its file makes a part of the tracer
//   wants: 'app'                    `attach(tracer, app)`, as soon as the application has it to itself
//   routeAsks (options)             whether a route asks for it, by its config.trace
//   inherits                        it is asked for also where a registration that is replaced has it
//   output (settings, foreign)      whether ended spans go to it: then `output(tracer, foreign, suppress)` of its file says where to
//   beside (settings)               whether it has the spans beside where they go: then `beside(tracer, output)` of its file adds it to the ExportMode
//   propagator (name)               whether it has that of OTEL_PROPAGATORS: then `propagator(name, report)` of its file makes it
//   interop, started, shrinker      that its file has the function of this name, for the seam of this name
//   calls                           that its file has the tables of the calls of libraries
//   environment                     that its file reads the one of OTEL_CONFIG_FILE
//   surface (tracer, load)          members of app.lightTrace, there whether the feature is asked for or not
//   uses                            the features that it requires
//
// A part may have these, which are called in the order of the table:
//
//   install (app, isRoot)       hooks and routes of the application, or of a scope that registers light-trace
//   atFirstRequest (hooks, request, options)  of a route: `hooks` is Fastify's own object for it
//   route (info)                of each method of a route, after that
//   follow (requests, app)      requests of an application or a scope, from their start
//   wrapEnd (endRequest)        the function that ends a request, made anew
//   decided ()                  it is decided how spans leave the process
//   open ()                     spans can be made
//   isWaiting, handOver (), takeOver (handed)  what waits for `open`, and its way to another registration
//   settle ()                   before a flush and the close: hands on the spans that wait for the event loop to turn
//   flush (options)             with the tracer's own
//   stats ()                    members of stats()
//   stop (), close ()           before the last spans are sent, and with them

/** @type {Record<string, any>} */
const FEATURES = { // where several answer at a seam, the first one does: `sdk` stands before `console` by decision D6
  omit: { // before what asks for tracer.omit, and wraps the end of spans before others do: it has the last word
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
    asked: isSet('keep', 'recorder', 'configFile'), // the file may name one
    load: () => require('./features/keep/keep.js'),
    surface: ({ parts, report, settings }, load) => ({
      snapshot: async (options) => parts.get('keep')?.snapshot(options) ?? load().nothingToTake(report, settings.disabled ? 'tracing is switched off' : 'the option `keep.recorder` is not set')
    })
  },
  accounts: {
    asked: (settings) => isSlowSaid(settings) || settings.configFile !== null, // the file may say what is slow
    routeAsks: isSlowSaid,
    load: () => require('./features/accounts.js')
  },
  inherit: { // behind `omit`, so that it stands before it on a span's way: what is inherited is left out, too
    asked: ({ inheritAttributes }) => inheritAttributes.length > 0,
    load: () => require('./features/inherit.js')
  },
  'repeated-calls': {
    asked: () => true, // the first call would come too late
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
    // Records need their request also where lines have no ids.
    started: ({ logIds, exportedLogs }, { log }) => (logIds || exportedLogs !== null) && typeof log?.setBindings === 'function' && typeof log.child === 'function', // pino; Fastify's default is not to log
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

/** Whether one of these options is set. */
function isSet (...options) { return (settings) => options.some((option) => Boolean(settings[option])) }

function isSlowSaid ({ slow }) { return slow?.afterMs < Infinity }

function asksForStages ({ spans }) { return spans !== null && (spans.handler || spans.hooks.length > 0) }

const rows = Object.entries(FEATURES)

/** The first of the features that answers at a seam, loaded; undefined where none does. */
function first (seam, ...args) {
  return rows.find(([, row]) => typeof row[seam] === 'function' ? row[seam](...args) : row[seam] === true)?.[1].load()
}

/** Adds the parts that are asked for to `tracer.parts`. @param {object} [app] once it has the tracer */
function attach (tracer, app = undefined) {
  for (const [name, { asked, wants, load }] of rows) {
    const isDue = (wants === 'app') === (app !== undefined)
    if (isDue && asked?.(tracer.settings)) tracer.parts.set(name, load().attach(tracer, app))
  }
}

/** The same for what a route asks for: when it is declared, or at its first request if that was before the plugin. */
function attachForRoute (tracer, options) {
  for (const [name, { routeAsks }] of rows) if (routeAsks?.(options)) partOf(tracer, name)
}

/** The part that takes over from that of a registration before; undefined where nobody asks for it. */
function heir (tracer, name) { return FEATURES[name]?.inherits ? partOf(tracer, name) : tracer.parts.get(name) }

function partOf (tracer, name) {
  const { parts, settings } = tracer
  if (!parts.has(name) && !settings.disabled) parts.set(name, FEATURES[name].load().attach(tracer))
  return parts.get(name)
}

/** Where ended spans go, if not to a collector: see exportMode() in tracer.js. */
function outputOf (tracer, foreign, suppress) { return first('output', tracer.settings, foreign)?.output(tracer, foreign, suppress) ?? null }

/** Adds to an ExportMode what has the spans as well. */
function besideOf (tracer, output) { if (!tracer.settings.disabled) first('beside', tracer.settings)?.beside(tracer, output) }

/** What lets another tracer provider, context manager or instrumentation take part in requests; null where nothing does. */
function interopOf (tracer) { return first('interop')?.interop(tracer) ?? null }

/** A propagator that is not W3C's; undefined where nothing has it. */
function propagatorOf (name, report) { return first('propagator', name)?.propagator(name, report) }

/** What makes the chunks of a full buffer smaller: see ChunkBuffer. Null where nothing does. */
function shrinkerOf (buffer, onGone, onFailed) { return first('shrinker')?.shrinker(buffer, onGone, onFailed) ?? null }

/** What is told of each request that has started, or null. */
function startedOf (app, tracer) { return first('started', tracer.settings, app)?.started(app, tracer) ?? null }

/** The variables that stand for a file of OTEL_CONFIG_FILE; undefined where nothing reads one. */
function environmentOf (file, values) { return first('environment')?.readConfiguration(file, values) }

/** Whether there are tables of the calls of libraries: nothing listens to them otherwise. */
const hasCalls = rows.some(([, row]) => row.calls)
let tables // of the calls of libraries, once one of them has made a call

/** Those tables: asked for by each call of some libraries. */
function calls () { return (tables ??= first('calls')) }

/** Adds what `app.lightTrace` has of features. */
function addSurface (decorator, tracer) {
  for (const [, { surface, load }] of rows) if (surface !== undefined) Object.defineProperties(decorator, Object.getOwnPropertyDescriptors(surface(tracer, load)))
}

/** What the package itself offers of a feature. */
function load (name) { return FEATURES[name].load() }

module.exports = { FEATURES, attach, attachForRoute, heir, outputOf, besideOf, interopOf, propagatorOf, shrinkerOf, startedOf, environmentOf, hasCalls, calls, addSurface, load }
