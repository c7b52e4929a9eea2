'use strict'

// Calls by global fetch and by every client of npm's undici, which publish the same channels:
//
//   undici:request:create       start the span, write the headers
//   undici:client:sendHeaders   the socket is known
//   undici:request:headers      end (a 1xx is not the end)
//   undici:request:error        end
//
// Only `create` may ask for the active context: the others run in that of whichever request opened the
// connection.

const { AsyncResource } = require('node:async_hooks')
const { kCall, activeContext, tracerIn, isSuppressed } = require('./calls')
const { RemoteServer, HttpCall, startHttpCall, endWithStatus, endWithError, setPeer } = require('./client-span')
const { propagate, passOn, mayPropagate } = require('./propagation')
const { splitHost } = require('../span/http-conventions')

const ORIGINS_MAX = 256
const HANDLER_SYMBOLS_MAX = 8

const call = new HttpCall()

// HOT, once per call.
function onCreate ({ request }) {
  if (request[kCall] !== undefined) return
  const context = callersContext(request)
  const tracer = tracerIn(context)
  if (tracer === null || !tracer.outbound?.undici) return
  request[kCall] = start(tracer, context, request)
}

function start (tracer, context, request) {
  readCall(request)
  if (isSuppressed(context)) {
    if (mayPropagate(tracer, call)) passOn(tracer, context, request, headersFor(tracer))
    return null
  }
  const span = startHttpCall(tracer, context, call)
  if (span === null) return null
  if (mayPropagate(tracer, call)) propagate(tracer, context, span, request, headersFor(tracer))
  return span.isRecording() ? span : null
}

// ---- whose call

const handlerSymbols = [] // of the copies of undici in the process

/**
 * A request that waited in the queue of a bounded pool is created while another's response is read, until
 * undici 8.12.3. Its handler is an AsyncResource of the caller.
 */
function callersContext (request) {
  const handler = handlerOf(request)
  if (!(handler instanceof AsyncResource)) {
    call.resendCount = resendsOf(handler)
    return activeContext()
  }
  call.resendCount = 0
  return handler.runInAsyncScope(activeContext)
}

function handlerOf (request) {
  for (let i = 0; i < handlerSymbols.length; i++) {
    const handler = request[handlerSymbols[i]]
    if (handler !== undefined) return handler
  }
  if (handlerSymbols.length === HANDLER_SYMBOLS_MAX) return undefined
  const symbol = Object.getOwnPropertySymbols(request).find(({ description }) => description === 'handler')
  if (symbol === undefined) return undefined
  handlerSymbols.push(symbol)
  return request[symbol]
}

/** Of the retry and redirect interceptors, where they are the outermost. */
function resendsOf (handler) {
  if (handler === undefined || handler === null) return 0
  const { retryCount, history } = handler
  if (Number.isInteger(retryCount)) return retryCount
  return Array.isArray(history) ? history.length : 0
}

// ---- what the call is

const origins = new Map() // origin → RemoteServer

function readCall (request) {
  const origin = typeof request.origin === 'string' ? request.origin : String(request.origin)
  let server = origins.get(origin)
  if (server === undefined) {
    server = readOrigin(origin)
    if (origins.size === ORIGINS_MAX) origins.clear()
    origins.set(origin, server)
  }
  call.method = request.method
  call.server = server
  call.target = String(request.path)
}

function readOrigin (origin) {
  const authority = origin.indexOf('://') + 3
  const { name, port } = splitHost(origin.slice(authority), origin.slice(0, authority - 3))
  return new RemoteServer(name, port, origin)
}

// ---- its headers: a flat list since undici 6, text before

function readHeader (request, name) {
  const { headers } = request
  if (typeof headers === 'string') return new RegExp(`^${name}: ?(.*)\\r$`, 'im').exec(headers)?.[1]
  for (let i = 0; i < headers.length; i += 2) {
    const key = headers[i]
    if (key.length === name.length && key.toLowerCase() === name) return String(headers[i + 1])
  }
  return undefined
}

function writeHeader (request, name, value) {
  const { headers } = request
  if (typeof headers === 'string') {
    request.headers = headers.replace(new RegExp(`^${name}: ?.*\\r\\n`, 'im'), '') + `${name}: ${value}\r\n`
    return
  }
  for (let i = 0; i < headers.length; i += 2) {
    const key = headers[i]
    if (key.length === name.length && key.toLowerCase() === name) {
      headers[i + 1] = value
      return
    }
  }
  headers.push(name, value)
}

function removeHeader (request, name) {
  const { headers } = request
  if (typeof headers === 'string') {
    request.headers = headers.replace(new RegExp(`^${name}: ?.*\\r\\n`, 'im'), '')
    return
  }
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    const key = headers[i]
    if (key.length === name.length && key.toLowerCase() === name) headers.splice(i, 2)
  }
}

/** Of a propagator that is not ours: undici checks it. Undici 6.11.0 has no addHeader. */
function writeForeignHeader (request, name, value) {
  if (readHeader(request, name) === undefined && typeof request.addHeader === 'function') request.addHeader(name, value)
  else writeHeader(request, name, value)
}

const HEADERS = { read: readHeader, write: writeHeader, remove: removeHeader }
const HEADERS_OF_OTHERS = { read: readHeader, write: writeForeignHeader, remove: removeHeader }

function headersFor (tracer) {
  return tracer.propagator === null ? HEADERS : HEADERS_OF_OTHERS
}

// ---- what became of it

// HOT, once per call.
function onSend ({ request, socket }) {
  const span = request[kCall]
  if (span === undefined || span === null) return
  setPeer(span, socket, socket, socket.alpnProtocol === 'h2' ? '2' : '1.1')
  if ((request.upgrade || request.method === 'CONNECT') && !publishesUpgrades(request)) {
    request[kCall] = null
    span.end()
  }
}

/** Before 8.11 and 7.29 an accepted upgrade or CONNECT is never heard of again. */
function publishesUpgrades (request) {
  try {
    return Function.prototype.toString.call(request.onUpgrade ?? request.onRequestUpgrade).includes('.publish(')
  } catch {
    return false
  }
}

// HOT, once per call.
function onHeaders ({ request, response }) {
  const span = request[kCall]
  if (span === undefined || span === null) return
  const { statusCode } = response
  if (statusCode < 200 && statusCode !== 101) return
  request[kCall] = null
  endWithStatus(span, statusCode)
}

function onError ({ request, error }) {
  const span = request[kCall]
  if (span === undefined || span === null) return
  request[kCall] = null
  endWithError(span, error)
}

/** Of the channels in node-clients.js, in their order. */
const subscribers = [onCreate, onSend, onHeaders, onError]

module.exports = { subscribers }
