'use strict'

// `npx light-trace app.js` loads this file before the app. It does the same as light-trace/register, with spans that production does not
// need: for handlers, and for requests that never reach a hook. It also tells the viewer what the app's tracer lost, or that nothing
// traces the app, and prints which libraries have no spans. The app starts even if something here fails.

const { subscribe, unsubscribe } = require('node:diagnostics_channel')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { reportLosses, reportUntraced, reportLibraries } = require('./report-losses')
const { tracePg } = require('./trace-pg')

const OLDEST_MAJOR = 5
const AGAIN_MS = 200

// `unrouted` is the option's former name. The app's own light-trace may be older and know only this name. Newer versions accept it.
const options = { [Symbol.for('light-trace.automatic')]: true, unrouted: true, spans: { handler: true } }

// Subscribed before light-trace is loaded, because light-trace adds an onClose hook to each app, too. The hook that is added first runs
// last, so the tracer has closed when ours runs.
subscribe('fastify.initialization', ({ fastify }) => guarded(() => { if (isTraced(fastify)) reportLosses(fastify) }))

guarded(() => {
  const { lightTrace, within } = plugin()
  const locate = locator(within)
  let hasPg = false
  guarded(() => { hasPg = tracePg(lightTrace) })
  subscribe('fastify.initialization', ({ fastify }) => guarded(() => {
    if (!isTraced(fastify)) return reportUntraced(`uses Fastify ${fastify.version}, and light-trace needs Fastify ${OLDEST_MAJOR} or later`)
    fastify.register(lightTrace, options)
    guarded(() => fastify.addHook('onRoute', locate)) // not in a plugin: routes may be declared before plugins are loaded
  }))
  subscribe('http.server.request.start', firstRequest)
  takeSignalsOnce()

  function firstRequest () {
    unsubscribe('http.server.request.start', firstRequest)
    guarded(() => reportUntraced('serves HTTP without Fastify. The viewer shows only what an OpenTelemetry SDK in it sends'))
    setImmediate(sayUntracedLibraries, within, hasPg)
  }
})

function isTraced ({ version }) { return Number.parseInt(version, 10) >= OLDEST_MAJOR }

/** Returns the hook that records where a route is declared. An older light-trace in the app does not have it. */
function locator (within) {
  try {
    const { noteDeclaration } = within('./lib/fastify/routes.js')
    return typeof noteDeclaration === 'function' ? noteDeclaration : () => {}
  } catch {
    return () => {}
  }
}

/** Reports the libraries without spans to the terminal and the viewer, before light-trace reports them in the app's log, which may be off. */
function sayUntracedLibraries (within, hasPg) {
  try {
    const { settledKinds, reportUntraced } = within('./lib/outbound/index.js')
    if (hasPg) settledKinds.add('pg') // pg is traced when it connects, which may be later
    reportLibraries(reportUntraced({ info: (message) => process.stderr.write(`light-trace: ${message}\n`) }))
  } catch {
    // The app's own light-trace has another version, which reports them in the log.
  }
}

// A supervisor, or a terminal that is not our input, sends a signal to the whole process group. A process that forwards the signal then
// delivers it a second time, and many apps exit immediately at the second signal. A user does not press Ctrl+C twice within AGAIN_MS.
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

// An exception in a preload or a subscriber would end the process.
function guarded (fn) {
  try {
    fn()
  } catch (error) {
    try {
      process.emitWarning(`an application is not traced: ${error?.message}`, { type: 'LightTraceWarning', code: 'LT_WARN_REGISTER' })
    } catch {} // Node itself throws if Error.prototype is frozen
  }
}

// Uses the app's own copy of light-trace if it has one. A second copy would be a second tracer.
function plugin () {
  try {
    const inApp = createRequire(join(process.cwd(), 'package.json'))
    return { lightTrace: inApp('light-trace'), within: createRequire(inApp.resolve('light-trace')) }
  } catch {
    return { lightTrace: require('../index'), within: createRequire(require.resolve('../index')) }
  }
}
