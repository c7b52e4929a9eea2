'use strict'

// Traces calls of global fetch and of every client of npm's undici, which publish the same channels:
//
//   undici:request:create       start the span, write the headers
//   undici:client:sendHeaders   the socket is known
//   undici:request:headers      end (a 1xx is not the end)
//   undici:request:error        end
//
// Only `create` may read the active context: the others run in the context of the request that opened the connection.
//
// Other packages publish these channels too, with their own request objects (undici-thread-interceptor, for calls between threads).
// Headers are written to them with `addHeader`, the method that undici documents. Objects without headers are ignored.

const { AsyncResource } = require('node:async_hooks')
const { onMessage } = require('../runtime/process-state.js')
const { kCall, activeContext, tracerIn, takeSpan, reserve } = require('./calls.js')
const { HttpCall, serverOfOrigin, startHttpCall, endWithStatus, endWithError, setPeer } = require('./client-span.js')

const HANDLER_SYMBOLS_MAX = 8

const call = new HttpCall()
const handlerSymbols = [] // one for each copy of undici in the process

const undiciSubscribers = [
  ['undici:request:create', onMessage(onCreate)],
  ['undici:client:sendHeaders', onMessage(onSend)],
  ['undici:request:headers', onMessage(onHeaders)],
  ['undici:request:error', onMessage(({ request, error }) => endWithError(request, error))]
]

// HOT, once per call.
function onCreate ({ request }) {
  if (!isRequest(request) || request[kCall] !== undefined) return
  const handler = handlerOf(request)
  const context = callersContext(handler)
  const tracer = tracerIn(context)
  if (tracer === null || !tracer.outbound?.undici) return
  if (handler === undefined && !reserve(request)) return
  const { method, origin, path } = request
  call.method = method
  call.server = serverOfOrigin(typeof origin === 'string' ? origin : String(origin))
  call.target = String(path)
  const headers = handler === undefined ? OFFERED_HEADERS : tracer.propagator === null ? HEADERS : FOREIGN_HEADERS
  request[kCall] = startHttpCall(tracer, context, call, request, headers)
}

/** Whether `request` is an object with headers. HOT */
function isRequest (request) {
  if (request === null || typeof request !== 'object') return false
  return Array.isArray(request.headers) || typeof request.headers === 'string'
}

/**
 * The context of the code that makes the call. Until undici 8.12.3, a request that waited in the queue of a bounded pool is created
 * while another request's response is read; its handler is an AsyncResource of the caller.
 */
function callersContext (handler) {
  const isWaiting = handler instanceof AsyncResource
  call.resendCount = isWaiting ? 0 : resendsOf(handler)
  return isWaiting ? handler.runInAsyncScope(activeContext) : activeContext()
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

/** How often the retry or redirect interceptor has resent this call, if that interceptor is the outermost. */
function resendsOf (handler) {
  if (handler === undefined || handler === null) return 0
  const { retryCount, history } = handler
  if (Number.isInteger(retryCount)) return retryCount
  return Array.isArray(history) ? history.length : 0
}

// The headers are a flat list since undici 6, and a string before.

function readHeader ({ headers }, name) {
  if (typeof headers === 'string') return new RegExp(`^${name}: ?(.*)\\r$`, 'im').exec(headers)?.[1]
  const at = indexOfHeader(headers, name)
  return at === -1 ? undefined : String(headers[at + 1])
}

function writeHeader (request, name, value) {
  removeHeader(request, name)
  if (typeof request.headers === 'string') request.headers += `${name}: ${value}\r\n`
  else request.headers.push(name, value)
}

function removeHeader (request, name) {
  const { headers } = request
  if (typeof headers === 'string') {
    request.headers = headers.replace(new RegExp(`^${name}: ?.*\\r\\n`, 'im'), '')
    return
  }
  for (let at = indexOfHeader(headers, name); at !== -1; at = indexOfHeader(headers, name)) headers.splice(at, 2)
}

// HOT
function indexOfHeader (headers, name) {
  for (let i = 0; i < headers.length; i += 2) {
    const key = headers[i]
    if (key.length === name.length && key.toLowerCase() === name) return i
  }
  return -1
}

/** Writes a header of a foreign propagator with addHeader, so that undici validates it. Undici 6.11.0 has no addHeader. */
function writeForeignHeader (request, name, value) {
  if (readHeader(request, name) === undefined && typeof request.addHeader === 'function') request.addHeader(name, value)
  else writeHeader(request, name, value)
}

/** Writes a header of a request object that is not undici's, which may not send its `headers` list. */
function offerHeader (request, name, value) {
  const at = indexOfHeader(request.headers, name)
  const spelled = at === -1 ? name : request.headers[at] // with another spelling, both would be sent
  removeHeader(request, name)
  if (typeof request.addHeader === 'function') request.addHeader(spelled, value)
  else writeHeader(request, name, value)
}

const HEADERS = { read: readHeader, write: writeHeader, remove: removeHeader }
const FOREIGN_HEADERS = { ...HEADERS, write: writeForeignHeader }
// Such objects have no method to remove a header, so it is set to an empty value.
const OFFERED_HEADERS = { read: readHeader, write: offerHeader, remove: (request, name) => offerHeader(request, name, '') }

// HOT, once per call.
function onSend ({ request, socket }) {
  if (socket === null || typeof socket !== 'object') return
  setPeer(request, socket, socket, socket.alpnProtocol === 'h2' ? '2' : '1.1')
  // Before 8.11 and 7.30, nothing is published for an accepted upgrade or CONNECT.
  if (request?.[kCall] && (request.upgrade || request.method === 'CONNECT')) socket.once('close', () => takeSpan(request)?.end())
}

// HOT, once per call.
function onHeaders ({ request, response }) {
  const statusCode = response?.statusCode
  if (statusCode >= 200 || statusCode === 101) endWithStatus(request, statusCode)
}

module.exports = { undiciSubscribers }
