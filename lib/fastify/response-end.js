'use strict'

// What became of a response, asked once, when it closes. What counts as an error is decision D13 (docs/decisions.md).

const { now, setImmediate } = require('../runtime/timers.js')
const { subscribe, guarded } = require('../runtime/process-state.js')
const { attempt } = require('../runtime/report.js')

// Node closes a response that it has made and is writing. Two kinds may never get 'close':
//
// - One that waits behind another on a pipelined connection, when the client leaves. Node 20 and 22 forget it; later versions do
//   where a CONNECT or an upgrade followed, which takes Node's own listeners off the socket. It ends with its connection.
// - One that the application made itself (`app.routing(request, new ServerResponse(request))`, as adapters of functions do).
//   It ends with 'finish'.
const kEnds = Symbol('light-trace.ends') // on such a response: what ends with it, each function idempotent
const kOpen = Symbol('light-trace.open') // on a connection: the responses that end with it

/** Calls `end` when the response is over, before its own span ends: more than once, if need be. */
function whenOver (response, end) {
  response.prependOnceListener('close', end)
  response[kEnds]?.unshift(end)
}

/** Ends a response of HTTP/1 that may get no 'close'. */
function endWithoutClose (response, socket, onClose) {
  response[kEnds] = [onClose.bind(response)]
  response.once('finish', () => process.nextTick(endAll, response)) // as late as Node's own 'close'
  if (typeof socket?.on !== 'function') return
  if (socket.closed) { // while a hook before ours took its time
    endAll(response)
    return
  }
  const open = socket[kOpen] ?? openOf(socket)
  open.add(response)
  response[kEnds].push(() => open.delete(response)) // an idle connection would else keep its last request
}

function openOf (socket) {
  const open = socket[kOpen] = new Set()
  // After Node's own listener, which closes the response that is being written.
  socket.on('close', () => setImmediate(() => open.forEach(endAll)))
  return open
}

function endAll (response) {
  for (const end of response[kEnds].splice(0)) end()
}

// Before Node 24 a response whose socket was reset with the answer still in it claims to be finished.
const finishedMeansFlushed = Number(process.versions.node.split('.')[0]) >= 24

/** Whether 'close' has come while a hook before ours took its time. HOT */
function isOver (response) {
  return response.stream !== undefined ? response.stream.destroyed : response.closed === true
}

/** The status code that went out, 0 if none did. As a number: the application may have set anything since. HOT */
function sentStatus (response) {
  return response.headersSent ? response.statusCode | 0 : isUpgraded(response) ? 101 : 0
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
  return response.headersSent && (isHijacked || isEventStream(response)) ? '' : 'aborted'
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

// `unrouted: true`: requests that are answered before any of our hooks runs (a bad URL, no Host, an app that is closing). Their
// spans are made when their response has gone out, which Node publishes for all HTTP/1 servers of the process, but not for
// HTTP/2 and inject().

const kStart = Symbol('light-trace.start')

/** Calls `trace(request, response, start)` with each response, until what this returns is called. `start`: NaN if it came before. */
function watchUnrouted (server, trace) {
  const kOurs = Symbol('light-trace.ours') // of this app, on each server of the process
  return subscribe([
    ['http.server.request.start', guarded(onStart)],
    ['http.server.response.finish', guarded(onFinish)]
  ])

  function onStart ({ request, server: other }) {
    if (isOurs(other)) request[kStart] = now()
  }

  function onFinish ({ request, response, server: other }) {
    if (isOurs(other)) trace(request, response, request[kStart] ?? NaN)
  }

  // listen({ host: 'localhost' }) makes a second server, which shares only the request listener.
  function isOurs (other) {
    return other === server || (other[kOurs] ??= sharesListener(server, other))
  }
}

function sharesListener (server, other) {
  const listeners = server.listeners('request')
  return other.listeners('request').some((listener) => listeners.includes(listener))
}

module.exports = { isOver, sentStatus, unfinished, whenOver, endWithoutClose, watchUnrouted }
