'use strict'

// Loaded into the app that `npx light-trace app.js` starts, before the app. It does what light-trace/register does, with more
// spans than production wants: handlers, and requests that never reach a hook. It also reports to the viewer what the app's
// tracer lost, or that nothing traces the app, and says which libraries have no spans. Whatever fails here, the app starts.

const { subscribe, unsubscribe } = require('node:diagnostics_channel')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { reportLosses, reportUntraced, reportLibraries } = require('./report-losses')
const { tracePg } = require('./trace-pg')

const OLDEST_MAJOR = 5
const AGAIN_MS = 200

// `unrouted` by its former name: the application's light-trace may be an older one, and a newer one accepts it.
const options = { [Symbol.for('light-trace.automatic')]: true, unrouted: true, spans: { handler: true } }

// Before light-trace is loaded, which adds an onClose hook to each application: the one that was added first runs last, and the tracer has
// closed by then.
subscribe('fastify.initialization', ({ fastify }) => guarded(() => { if (isTraced(fastify)) reportLosses(fastify) }))

guarded(() => {
  const { lightTrace, within } = plugin()
  const locate = locator(within)
  let hasPg = false
  guarded(() => { hasPg = tracePg(lightTrace) })
  subscribe('fastify.initialization', ({ fastify }) => guarded(() => {
    if (!isTraced(fastify)) return reportUntraced(`uses Fastify ${fastify.version}, and light-trace needs Fastify ${OLDEST_MAJOR} or later`)
    fastify.register(lightTrace, options)
    guarded(() => fastify.addHook('onRoute', locate)) // now: routes may be declared before a plugin is loaded
  }))
  subscribe('http.server.request.start', firstRequest)
  takeSignalsOnce()

  function firstRequest () {
    unsubscribe('http.server.request.start', firstRequest)
    guarded(() => reportUntraced('answers requests without Fastify: only what an OpenTelemetry SDK in it sends is shown'))
    setImmediate(sayUntracedLibraries, within, hasPg)
  }
})

function isTraced ({ version }) { return Number.parseInt(version, 10) >= OLDEST_MAJOR }

/** What notes where a route is declared; an app's own light-trace of an older version cannot. */
function locator (within) {
  try {
    const { noteDeclaration } = within('./lib/fastify/routes.js')
    return typeof noteDeclaration === 'function' ? noteDeclaration : () => {}
  } catch {
    return () => {}
  }
}

/** Says in the terminal and the viewer which libraries have no spans, before light-trace says it in the app's log, which may be off. */
function sayUntracedLibraries (within, hasPg) {
  try {
    const { settledKinds, reportUntraced } = within('./lib/outbound/index.js')
    if (hasPg) settledKinds.add('pg') // it is traced when it connects, which may be later
    reportLibraries(reportUntraced({ info: (message) => process.stderr.write(`light-trace: ${message}\n`) }))
  } catch {
    // The app's own light-trace is of another version, which says it in the log.
  }
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
    try {
      process.emitWarning(`an application is not traced: ${error?.message}`, { type: 'LightTraceWarning', code: 'LT_WARN_REGISTER' })
    } catch {} // Node's own, where Error.prototype is frozen
  }
}

// The app's own copy, if it has one: two would be two tracers.
function plugin () {
  try {
    const inApp = createRequire(join(process.cwd(), 'package.json'))
    return { lightTrace: inApp('light-trace'), within: createRequire(inApp.resolve('light-trace')) }
  } catch {
    return { lightTrace: require('../index'), within: createRequire(require.resolve('../index')) }
  }
}
