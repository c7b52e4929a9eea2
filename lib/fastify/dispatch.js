'use strict'

// Who has dispatched a request: Node's own HTTP/1 parser, or code that goes on afterwards.
//
// On AsyncContextFrame `enterWith` stays when our hook has returned: with the parser's callback it ends, but code that
// calls `app.routing(req, res)` or `server.emit('request', ...)` would go on in the request's context, and start the next
// request there. `run` gives back what was active, for the price of one more copy of the frame.

const { usesAsyncHooks } = require('../context/async-storage')

// On a server: the handler of the one app that hears of its requests, or null where somebody else does, too. Absent
// until it is asked for, and again when a listener comes or goes: Node looks up listeners in a dictionary.
const kOnlyHandler = Symbol('light-trace.only-handler')
const kIsWatched = Symbol('light-trace.is-watched')

/**
 * Whether nobody sees what is left active: the parser has just read this request, and its server has no listener but
 * Fastify's own handler. HOT
 */
function isByParser (raw, handler) {
  const { socket } = raw
  if (socket === null || socket === undefined) return false
  const { parser, server } = socket
  if (parser === null || parser === undefined || parser.incoming !== raw || server === null || server === undefined) return false
  const known = server[kOnlyHandler]
  return (known === undefined ? onlyHandler(server) : known) === handler
}

function onlyHandler (server) {
  if (typeof server.listeners !== 'function') return null
  watchListeners(server)
  const handlers = server.listeners('request')
  // A request with `Expect: 100-continue` is handed to these in place of the handler.
  const isOnly = handlers.length === 1 && server.listenerCount('checkContinue') === 0 && server.listenerCount('checkExpectation') === 0
  return (server[kOnlyHandler] = isOnly ? handlers[0] : null)
}

function watchListeners (server) {
  if (server[kIsWatched] === true) return
  server[kIsWatched] = true
  server.on('newListener', forget)
  server.on('removeListener', onRemoved)
}

function forget () {
  this[kOnlyHandler] = undefined
}

function onRemoved (event, listener) {
  if (listener === forget || listener === onRemoved) this[kIsWatched] = false // by removeAllListeners()
  this[kOnlyHandler] = undefined
}

/**
 * The same for all requests of an app.
 * @param {FastifyInstance} app
 * @returns {(raw: IncomingMessage) => boolean} whether the request may be entered by `enter`, else by `enterIsolated`
 */
function dispatchOf (app) {
  const { routing } = app
  // On async_hooks both are `run`.
  return usesAsyncHooks
    ? () => true
    // HTTP/2 is asked nothing: its socket is a proxy that is made when it is read.
    : (raw) => raw.httpVersionMajor === 1 && isByParser(raw, routing)
}

module.exports = { dispatchOf, isByParser }
