'use strict'

// Determines the outcome of a response, once, when it closes. Decision D13 (docs/decisions.md) defines what counts as an error.

const { STATUS_CODES } = require('node:http')
const { setImmediate } = require('../runtime/timers.js')
const { guarded } = require('../runtime/process-state.js')
const { attempt } = require('../runtime/report.js')
const { currentFrame, enterFrom } = require('../context/async-storage.js')
const { LEFT, outcomeOf } = require('../span/outcome.js')
const { kContext } = require('./keys.js')

// Node emits 'close' once for most responses, which ends them. Two kinds of HTTP/1 responses may not get it:
//
// - A response that waits behind another on a pipelined connection when the client disconnects. Node 20 and 22 forget it; so do later
//   versions after a CONNECT or an upgrade, which removes Node's own listeners from the socket. It ends with its connection.
// - A response that the application created (`app.routing(request, new ServerResponse(request))`, as function adapters do).
//   It ends with 'finish'.

const kLast = Symbol('light-trace.last') // on a connection: the Ending of the last waiting response, or null

/** What the end of a request needs besides its record. It is kept on the request's context; most requests need none. */
class Ending {
  constructor (response) {
    this.response = response // null once it is over
    this.onClose = null // called to end it, if 'close' may not come
    this.connection = null
    this.before = null // the Ending of the previous response on the connection. Never link to the next one: see leaveConnection()
    this.frame = undefined // the async frame in which its request arrived
    this.callbacks = null // called before its record ends
    this.lastCallbacks = null // called after its record has ended
    this.reply = null // Fastify's, for lastCallbacks
    this.isAwaited = false
  }
}

function endingOf (response) {
  const context = response[kContext]
  return context.ending ?? (context.ending = new Ending(response))
}

/** Whether 'close' is certain: the response is HTTP/1 and written at once, or is one of `inject()`. HOT, once per request. */
function isUsual (request, response) {
  return request.httpVersionMajor === 1 && (request._lightMyRequest !== undefined || Boolean(response.socket?.parser))
}

/** Ensures that `onClose` is called for an unusual response, and that listeners to its end run in its request's context. */
// HOT, once per request that waits on a pipelined connection. Budget: 1 object, and the list of listeners that Node makes.
function prepareEnd (context, request, response, onClose) {
  const isHttp1 = request.httpVersionMajor === 1
  const hasSocket = isHttp1 && response.socket !== null
  if (!hasSocket) followFinish(response)
  if (context.record === null) return
  if (hasSocket || !isHttp1 || !request.socket?.parser) response.on('close', onClose) // a waiting response ends at its 'finish'
  if (isHttp1) endWithoutClose(request, response, onClose)
}

/** Arranges the end of an HTTP/1 response that may get no 'close'. */
function endWithoutClose ({ socket }, response, onClose) {
  const ending = endingOf(response)
  ending.onClose = onClose
  if (response.socket !== null) response.on('finish', onOwnFinish) // onFinish calls it for the others
  if (typeof socket?.on !== 'function') return
  if (socket.closed) { // closed while an earlier hook was running
    onClose.call(response)
    return
  }
  if (socket[kLast] === undefined) {
    socket[kLast] = null
    socket.on('close', onConnectionClose)
  }
  ending.connection = socket
  ending.before = socket[kLast]
  socket[kLast] = ending
}

/** Calls `end` when the response is over, before its own span ends. */
function whenOver (response, end) {
  if (response[kContext] === undefined) response.once('close', end) // our hooks did not see this request
  else (awaitedEnding(response).callbacks ??= []).push(end)
}

/** Calls `end(outcome)`, see lib/span/outcome.js, when the response is over and its own span has ended. */
function whenEnded (reply, end) {
  const { raw } = reply
  if (isOver(raw)) {
    end(outcomeOf(sentStatus(raw), unfinished(raw, reply), saidOf(raw[kContext])))
    return
  }
  const ending = awaitedEnding(raw)
  ending.reply = reply;
  (ending.lastCallbacks ??= []).push(end)
}

function awaitedEnding (response) {
  const ending = endingOf(response)
  if (ending.isAwaited) return ending
  ending.isAwaited = true
  if (response[kContext].record !== null) return ending // the listener that ends its record is already there
  response.on('close', endUnrecorded)
  if (!isUsual(response.req, response) && response.req.httpVersionMajor === 1) endWithoutClose(response.req, response, endUnrecorded)
  return ending
}

/** Calls all callbacks of a request that has no record; `this` is the response. */
function endUnrecorded () {
  const { ending } = this[kContext]
  if (ending === null) return
  endOthers.call(this)
  if (ending.lastCallbacks !== null) endLast(this[kContext], ending, sentStatus(this), unfinished(this, ending.reply))
}

/** Releases a request's Ending and calls the callbacks that run before its record ends; `this` is the response. */
function endOthers () {
  const context = this[kContext]
  const { ending } = context
  if (ending === null) return
  context.ending = null
  leaveConnection(ending)
  if (ending.callbacks !== null) for (const end of ending.callbacks) guarded(end)()
}

/** Calls the callbacks that run after the record has ended. */
function endLast (context, { lastCallbacks }, status, broken) {
  if (lastCallbacks === null) return
  const outcome = outcomeOf(status, broken, saidOf(context))
  for (const end of lastCallbacks) guarded(end)(outcome)
}

/** The status code of the request's span, which may be an SDK's and throw. */
function saidOf ({ span }) {
  return attempt(() => span.status?.code)
}

/**
 * Removes a finished response from its connection. Responses on a connection end in order, so the list is linked from the last to the
 * first, and a finished response never references a later one. In a Set, outgrown tables reference later ones: once V8 has moved such a
 * table to the old generation, it would keep every later request until a major collection.
 */
function leaveConnection (ending) {
  const { connection } = ending
  ending.response = null
  if (connection === null) return
  let { before } = ending
  while (before !== null && before.response === null) before = before.before
  ending.before = before
  if (connection[kLast] === ending) connection[kLast] = before
}

// Deferred, so that Node's own listener closes the response that is being written first.
function onConnectionClose () {
  setImmediate(endWaiting, this)
}

function endWaiting (connection) {
  const waiting = []
  for (let ending = connection[kLast]; ending !== null; ending = ending.before) waiting.unshift(ending)
  for (const { response, onClose } of waiting) if (response !== null) onClose.call(response)
}

// For a response that the application created; deferred to the time at which Node would emit 'close'.
function onOwnFinish () {
  process.nextTick(endOwn, this)
}

function endOwn (response) {
  response[kContext].ending?.onClose?.call(response)
}

/**
 * Makes listeners to the response's 'finish' and 'close' (including Fastify's onResponse hooks) run in the context of its own request.
 * Without this, they would run in another request's context, or in none, for waiting responses on a pipelined connection and in HTTP/2.
 */
function followFinish (response) {
  const frame = currentFrame()
  if (frame !== undefined) endingOf(response).frame = frame
  // Before Node's own listener, which passes the connection to the next response.
  response.prependListener('finish', onFinish)
}

// HOT, once per response that has waited. The context is not restored, because Node finishes each response in its own callback or tick.
function onFinish () {
  const context = this[kContext]
  const { ending } = context
  const onClose = ending === null ? null : ending.onClose
  const hasWaited = this.stream === undefined && this.socket !== null
  if (hasWaited && !isListenedTo(this)) {
    if (onClose !== null) onClose.call(this)
    return
  }
  enterFrom(ending === null ? undefined : ending.frame, context)
  if (hasWaited && onClose !== null) this.on('close', onClose)
  if (this.stream === undefined && !hasWaited) onOwnFinish.call(this)
}

/** Whether code other than Node and this file listens to the end of a response that has waited, or of its request. */
function isListenedTo (response) {
  return response.listenerCount('finish') > 2 || response.listenerCount('close') > 0 || response.req.listenerCount('close') > 0
}

// Before Node 24, a response counts as finished even if its socket was reset before the data was sent.
const finishedMeansFlushed = Number(process.versions.node.split('.')[0]) >= 24

const STATUS_AT = 'HTTP/1.1 '.length

/** Whether 'close' was already emitted while an earlier hook was running. HOT */
function isOver (response) {
  return response.stream !== undefined ? response.stream.destroyed : response.closed === true
}

/**
 * The status code that was sent, or 0. For HTTP/1 it is read from the header that Node wrote, because `headersSent` may be redefined
 * (@fastify/express does) and `statusCode` may be set later. If `statusCode` matches its message, it was not changed. HOT
 */
function sentStatus (response) {
  const { _header: header } = response
  if (typeof header !== 'string') return header === null ? upgradeStatus(response) : otherStatus(response)
  const { statusCode } = response
  return STATUS_CODES[statusCode] === response.statusMessage ? statusCode | 0 : Number(header.slice(STATUS_AT, STATUS_AT + 3))
}

function upgradeStatus (response) {
  return isUpgraded(response) ? 101 : 0
}

/** For HTTP/2, and for a response object that is not Node's. */
function otherStatus (response) {
  const sent = response.stream === undefined ? undefined : response.stream.sentHeaders
  if (sent !== undefined) return sent[':status'] | 0
  return response.headersSent ? response.statusCode | 0 : upgradeStatus(response)
}

/** Whether the head of the response was sent. */
function hasHead (response) {
  const { _header: header, stream } = response
  return header === undefined ? (stream === undefined ? response.headersSent : stream.headersSent) : header !== null
}

/** '' for a complete response, or one whose early end is normal; otherwise the `error.type`. HOT */
function unfinished (response, reply) {
  return (response.stream === undefined ? isWhole(response) : isWholeStream(response)) ? '' : brokenOff(response, reply)
}

function isWhole (response) {
  const { writableEnded, writableFinished } = response // writableFinished alone would be wrong for inject()
  const socket = socketOf(response)
  return writableEnded && (writableFinished || socket?.destroyed !== true) && (finishedMeansFlushed || (socket?.errored ?? null) === null)
}

// A waiting pipelined response has no socket yet, but its request has.
function socketOf ({ socket, req }) {
  return socket ?? req?.socket ?? null
}

// For HTTP/2. The socket is not read: it is a proxy that throws once the session is gone.
function isWholeStream ({ writableEnded, stream }) {
  // For HEAD, Node may write a body after the end, which fails harmlessly.
  return writableEnded && stream.rstCode === 0 && (!stream.errored || stream.errored.code === 'ERR_STREAM_WRITE_AFTER_END')
}

function brokenOff (response, reply) {
  if (sentStatus(response) === 101) return ''
  if (!clientLeft(response)) return 'response_terminated'
  // Before the response has ended, only a hijacked reply counts as sent.
  const isHijacked = !response.writableEnded && reply.sent
  return hasHead(response) && (isHijacked || isEventStream(response)) ? '' : LEFT
}

/** The `ws` package (used by @fastify/websocket) writes its 101 directly to the socket, and marks a socket that it accepts. */
function isUpgraded (response) {
  if (response.req?.upgrade !== true) return false
  const socket = socketOf(response)
  return socket !== null && Object.getOwnPropertySymbols(socket).some(({ description }) => description === 'websocket')
}

function isEventStream (response) {
  return attempt(() => String(response.getHeader('content-type')).startsWith('text/event-stream')) === true
}

/** Whether the client closed the connection: the socket got FIN or a reset. If this side closed it, the socket is destroyed without either. */
function clientLeft (response) {
  if (response.stream !== undefined) return streamReset(response.stream)
  if (response.req?._lightMyRequest !== undefined) return response.req.destroyed === true // by the `signal` of inject()
  // An error means that the app destroyed the response, unless Node discarded the queue of a closed connection.
  if (response.errored && response.socket !== null) return false
  const socket = socketOf(response)
  return socket !== null && (socket.readableEnded === true || isSystemError(socket.errored))
}

/** Whether the peer reset the stream: with an error code, or without, which finishes the writable side. Our own reset does not finish it. */
function streamReset ({ errored, rstCode, writableFinished }) {
  if (errored) return isSystemError(errored) || errored.code === 'ERR_HTTP2_STREAM_ERROR'
  return rstCode !== 0 || writableFinished
}

/** Whether an error comes from the operating system, and so from outside: ECONNRESET, EPIPE, ETIMEDOUT ... */
function isSystemError (error) {
  return typeof error?.syscall === 'string'
}

module.exports = { isOver, isUsual, hasHead, sentStatus, unfinished, whenOver, whenEnded, prepareEnd, endOthers, endLast }
