'use strict'

// Who has dispatched a request: Node's own HTTP/1 parser, or code that goes on afterwards.
//
// On AsyncContextFrame `enterWith` stays when our hook has returned: with the parser's callback it ends, but code that
// calls `app.routing(req, res)` or `server.emit('request', ...)` would go on in the request's context, and start the next
// request there. `run` gives back what was active, for the price of one more copy of the frame.

const { usesAsyncHooks } = require('../context/async-storage')

/**
 * Whether nobody sees what is left active: the parser has just read this request, and its server has no listener but
 * Fastify's own handler. HOT
 */
function isByParser (raw, handler) {
  const { socket } = raw
  if (socket === null || socket === undefined) return false
  const { parser, server } = socket
  return parser !== null && parser !== undefined && parser.incoming === raw &&
    server !== null && server !== undefined && server._events !== undefined && server._events.request === handler &&
    raw.headers.expect === undefined // there may be a listener of 'checkContinue'
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

module.exports = { dispatchOf }
