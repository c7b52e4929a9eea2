'use strict'

// What became of a response, asked once, when it closes. What counts as an error is decision D13 (docs/decisions.md).

const { STATUS_CODES } = require('node:http')
const { setImmediate } = require('../runtime/timers.js')
const { guarded } = require('../runtime/process-state.js')
const { attempt } = require('../runtime/report.js')
const { currentFrame, enterFrom } = require('../context/async-storage.js')
const { LEFT, outcomeOf } = require('../span/outcome.js')
const { kContext } = require('./keys.js')

// Most responses get 'close' from Node, once, and that is their end. Two kinds of HTTP/1 may not get it:
//
// - One that waits behind another on a pipelined connection, when the client leaves. Node 20 and 22 forget it; later versions do
//   where a CONNECT or an upgrade followed, which takes Node's own listeners off the socket. It ends with its connection.
// - One that the application made itself (`app.routing(request, new ServerResponse(request))`, as adapters of functions do).
//   It ends with 'finish'.

const kLast = Symbol('light-trace.last') // on a connection: the Ending of the last response that waits on it, or null

/** What the end of a request needs beyond its record. It hangs on the request's context; most requests have none. */
class Ending {
  constructor (response) {
    this.response = response // until it is over
    this.onClose = null // what ends it, where 'close' may not come
    this.connection = null
    this.before = null // the Ending of the response that waits before it. Never the one behind: see leaveConnection()
    this.frame = undefined // in which its request came
    this.callbacks = null // before its record ends
    this.lastCallbacks = null // after that
    this.reply = null // Fastify's, for these
    this.isAwaited = false
  }
}

function endingOf (response) {
  const context = response[kContext]
  return context.ending ?? (context.ending = new Ending(response))
}

/** Whether Node writes the response at once, and so has it get 'close'; `inject()` has it as well. HOT, once per request. */
function isUsual (request, response) {
  return request.httpVersionMajor === 1 && (request._lightMyRequest !== undefined || Boolean(response.socket?.parser))
}

/** Has `onClose` called for a response that is not a usual one, and readies its request's context for what listens to its end. */
// HOT, once per request that waits on a pipelined connection. Budget: 1 object, and the list of listeners that Node makes.
function prepareEnd (context, request, response, onClose) {
  const isHttp1 = request.httpVersionMajor === 1
  const hasSocket = isHttp1 && response.socket !== null
  if (!hasSocket) followFinish(response)
  if (context.record === null) return
  if (hasSocket || !isHttp1 || !request.socket?.parser) response.on('close', onClose) // one that waits ends at its 'finish'
  if (isHttp1) endWithoutClose(request, response, onClose)
}

/** Ends a response of HTTP/1 that may get no 'close'. */
function endWithoutClose ({ socket }, response, onClose) {
  const ending = endingOf(response)
  ending.onClose = onClose
  if (response.socket !== null) response.on('finish', onOwnFinish) // which onFinish does for the others
  if (typeof socket?.on !== 'function') return
  if (socket.closed) { // while a hook before ours took its time
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
  if (response[kContext] === undefined) response.once('close', end) // no hook of ours has seen it
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
  if (response[kContext].record !== null) return ending // which is waited for
  response.on('close', endUnrecorded)
  if (!isUsual(response.req, response) && response.req.httpVersionMajor === 1) endWithoutClose(response.req, response, endUnrecorded)
  return ending
}

/** Ends all of a request that has no record; `this` is the response. */
function endUnrecorded () {
  const { ending } = this[kContext]
  if (ending === null) return
  endOthers.call(this)
  if (ending.lastCallbacks !== null) endLast(this[kContext], ending, sentStatus(this), unfinished(this, ending.reply))
}

/** Ends what is called at the end of a request beside its record; `this` is the response. */
function endOthers () {
  const context = this[kContext]
  const { ending } = context
  if (ending === null) return
  context.ending = null
  leaveConnection(ending)
  if (ending.callbacks !== null) for (const end of ending.callbacks) guarded(end)()
}

/** Calls what waits for the end of its record. */
function endLast (context, { lastCallbacks }, status, broken) {
  if (lastCallbacks === null) return
  const outcome = outcomeOf(status, broken, saidOf(context))
  for (const end of lastCallbacks) guarded(end)(outcome)
}

/** The status of the request's span, which may be an SDK's. */
function saidOf ({ span }) {
  return attempt(() => span.status?.code)
}

/**
 * Takes a response that is over off its connection. Responses on a connection end in their order, so the list is a chain from the last
 * to the first: what has ended refers to nothing that came later. A Set would refer to it (its outgrown tables do), and V8, once it
 * has moved one of them to the old generation, would keep each later request until a major collection.
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

// After Node's own listener, which closes the response that is being written.
function onConnectionClose () {
  setImmediate(endWaiting, this)
}

function endWaiting (connection) {
  const waiting = []
  for (let ending = connection[kLast]; ending !== null; ending = ending.before) waiting.unshift(ending)
  for (const { response, onClose } of waiting) if (response !== null) onClose.call(response)
}

// Of the application's own response, as late as Node's own 'close'.
function onOwnFinish () {
  process.nextTick(endOwn, this)
}

function endOwn (response) {
  response[kContext].ending?.onClose?.call(response)
}

/**
 * Has what listens to the response's 'finish' and 'close' (Fastify's onResponse hooks among it) run in its own request's context, where
 * that would be another's, or none: behind another response on a pipelined connection, and in HTTP/2.
 */
function followFinish (response) {
  const frame = currentFrame()
  if (frame !== undefined) endingOf(response).frame = frame
  // Before Node's own listener, which hands the connection to the next response.
  response.prependListener('finish', onFinish)
}

// HOT, once per response that has waited. No context is put back: Node finishes each response in a callback, or a tick, of its own.
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

/** Whether anybody but Node and this file listens to the end of a response that has waited, or of its request. */
function isListenedTo (response) {
  return response.listenerCount('finish') > 2 || response.listenerCount('close') > 0 || response.req.listenerCount('close') > 0
}

// Before Node 24 a response whose socket was reset with the answer still in it claims to be finished.
const finishedMeansFlushed = Number(process.versions.node.split('.')[0]) >= 24

const STATUS_AT = 'HTTP/1.1 '.length

/** Whether 'close' has come while a hook before ours took its time. HOT */
function isOver (response) {
  return response.stream !== undefined ? response.stream.destroyed : response.closed === true
}

/**
 * The status code that went out, 0 if none did. Of HTTP/1 it is in the header that Node wrote: `headersSent` may be defined anew
 * (@fastify/express does), and `statusCode` set again. As long as the code and its message agree nobody has. HOT
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

/** Of HTTP/2, and of a response that is none of Node's. */
function otherStatus (response) {
  const sent = response.stream === undefined ? undefined : response.stream.sentHeaders
  if (sent !== undefined) return sent[':status'] | 0
  return response.headersSent ? response.statusCode | 0 : upgradeStatus(response)
}

/** Whether the head of the response went out. */
function hasHead (response) {
  const { _header: header, stream } = response
  return header === undefined ? (stream === undefined ? response.headersSent : stream.headersSent) : header !== null
}

/** '' for a whole response, or one whose early end is the normal one; else the `error.type`. HOT */
function unfinished (response, reply) {
  return (response.stream === undefined ? isWhole(response) : isWholeStream(response)) ? '' : brokenOff(response, reply)
}

function isWhole (response) {
  const { writableEnded, writableFinished } = response // which alone would be wrong for inject()
  const socket = socketOf(response)
  return writableEnded && (writableFinished || socket?.destroyed !== true) && (finishedMeansFlushed || (socket?.errored ?? null) === null)
}

// A pipelined response that waits for its turn has no socket yet; its request has.
function socketOf ({ socket, req }) {
  return socket ?? req?.socket ?? null
}

// HTTP/2. Its socket is the session's: a proxy that throws once the session is gone.
function isWholeStream ({ writableEnded, stream }) {
  // To HEAD Node may write a body after the end, which fails and harms nobody.
  return writableEnded && stream.rstCode === 0 && (!stream.errored || stream.errored.code === 'ERR_STREAM_WRITE_AFTER_END')
}

function brokenOff (response, reply) {
  if (sentStatus(response) === 101) return ''
  if (!clientLeft(response)) return 'response_terminated'
  // Before the response has ended, only a hijacked reply counts as sent.
  const isHijacked = !response.writableEnded && reply.sent
  return hasHead(response) && (isHijacked || isEventStream(response)) ? '' : LEFT
}

/** The `ws` package (so @fastify/websocket) writes its 101 past the response, and marks the socket where it accepts. */
function isUpgraded (response) {
  if (response.req?.upgrade !== true) return false
  const socket = socketOf(response)
  return socket !== null && Object.getOwnPropertySymbols(socket).some(({ description }) => description === 'websocket')
}

function isEventStream (response) {
  return attempt(() => String(response.getHeader('content-type')).startsWith('text/event-stream')) === true
}

/** The client's end is seen on the socket: it sent FIN, or reset. Ours is one destroyed without either. */
function clientLeft (response) {
  if (response.stream !== undefined) return streamReset(response.stream)
  if (response.req?._lightMyRequest !== undefined) return response.req.destroyed === true // its signal
  // With an error the app destroyed it, unless Node emptied the queue of a connection that is gone.
  if (response.errored && response.socket !== null) return false
  const socket = socketOf(response)
  return socket !== null && (socket.readableEnded === true || isSystemError(socket.errored))
}

/** By the peer: with a code, or quietly, which finishes the stream's writable side; ours leaves it. */
function streamReset ({ errored, rstCode, writableFinished }) {
  if (errored) return isSystemError(errored) || errored.code === 'ERR_HTTP2_STREAM_ERROR'
  return rstCode !== 0 || writableFinished
}

/** From the operating system, so from outside: ECONNRESET, EPIPE, ETIMEDOUT ... */
function isSystemError (error) {
  return typeof error?.syscall === 'string'
}

module.exports = { isOver, isUsual, hasHead, sentStatus, unfinished, whenOver, whenEnded, prepareEnd, endOthers, endLast }
