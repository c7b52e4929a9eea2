'use strict'

// npx light-trace [app.js]: runs the viewer, and the app in a separate process.

const { Viewer } = require('../http/server')
const { EVERY, addressOf } = require('./client')

const SAY = (text) => process.stderr.write(`light-trace: ${text}\n`)

/** Resolves when the viewer has ended, if it ends by itself. */
async function serve (parsed) {
  const viewer = await openViewer(parsed.options, parsed.program !== null)
  const name = viewer.joined === undefined ? viewer.url : `${viewer.url}, the viewer of process ${viewer.joined},`
  const grpc = viewer.grpc === null ? '' : ` (gRPC: port ${viewer.grpc.port})`
  SAY(`${name} shows ${parsed.program === null ? 'what is sent to it' : `the requests of ${parsed.program[0]}`}${grpc}`)
  await attend(viewer, parsed)
}

/** Runs until a signal or until the app ends. The process then ends in the same way as the app. */
async function attend (viewer, parsed) {
  if (parsed.program === null) return untilSignal(viewer)
  const { runProgram } = require('./run-program')
  const end = await runProgram(viewer, parsed, SAY).catch(async (error) => {
    await viewer.close()
    throw error
  })
  if (parsed.options.stay === true && !end.isOver) {
    SAY(`${parsed.program[0]} has ended ${end.signal === null ? `with exit code ${end.code}` : `on ${end.signal}`}. Press Ctrl-C to end the viewer`)
    await new Promise((resolve) => { for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, resolve) })
  }
  await viewer.close()
  endAs(end)
}

// Options of a viewer. With one of these, the user wants a new viewer.
const OWN = ['grpc-port', 'host', 'max-bytes', 'save', 'stay', 'editor']

/**
 * @param {boolean} [mayJoin] whether a viewer that runs in another terminal may be used instead
 * @returns {Promise<Viewer | object>} listening
 */
async function openViewer (options, mayJoin = false) {
  const { listenFrom, listenForGrpc } = require('./port')
  const token = options.host === undefined ? null : options.token ?? newToken()
  const make = () => new Viewer({ maxBytes: options['max-bytes'], token, editor: options.editor })
  const { viewer, port, joined } = await listenFrom(make, options, SAY, mayJoin ? { own: OWN.find((name) => name in options) } : undefined)
  if (joined !== undefined) {
    return { joined, port, url: urlOf(undefined, port), token: null, app: null, grpc: null, events: { touch () {} }, async close () {} }
  }
  viewer.port = port
  viewer.say = SAY
  await listenForGrpc(viewer, options, SAY)
  viewer.url = urlOf(options.host, port, token)
  // A bug in the viewer must not end the app, too.
  process.on('uncaughtException', (error) => SAY(`the viewer keeps running after an error in it: ${error.stack}`))
  if (options.save !== undefined) require('./save').saveTo(viewer, options.save, SAY)
  return viewer
}

function newToken () {
  return require('node:crypto').randomBytes(24).toString('base64url')
}

/** The URL for the user to open. */
function urlOf (host, port, token) {
  if (host === undefined) return `http://localhost:${port}`
  return `${addressOf(EVERY.includes(host) ? require('node:os').hostname() : host, port)}/?token=${token}`
}

function untilSignal (viewer) {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
      process.once(signal, async () => {
        await viewer.close()
        endAs({ code: null, signal })
        resolve()
      })
    }
  })
}

// Ends by the same signal, so that the parent process sees what happened to the app.
function endAs ({ code, signal }) {
  if (signal === null) process.exit(code)
  process.removeAllListeners(signal)
  try {
    process.kill(process.pid, signal)
  } catch {
    process.exit(1)
  }
}

module.exports = { serve, openViewer, attend, SAY }
