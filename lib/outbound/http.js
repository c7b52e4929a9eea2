'use strict'

// Traces calls of node:http, node:https and node:http2 with the channels that Node publishes:
//
//   http.client.request.created   (22.12 and later) start the span, write the headers
//   http.client.request.start     (before that) start the span; the headers are already sent
//   http.client.response.finish   the headers of the final response have arrived: end
//   http.client.request.error     end
//   http2.client.stream.*         (22.17 and later) the same; the headers are fixed, request.trace.inject() propagates
//
// An accepted upgrade and a CONNECT publish neither response nor error, so we listen to 'close' of those requests.

const { onMessage } = require('../runtime/process-state.js')
const { kCall, activeContext, tracerIn } = require('./calls.js')
const { RemoteServer, HttpCall, startHttpCall, endWithStatus, endWithError, setPeer } = require('./client-span.js')
const { splitHost } = require('../http/conventions.js')

const [major, minor] = process.versions.node.split('.').map(Number)
// Since these versions, a request is published while headers can still be added to it.
const canInject = major > 23 || (major === 23 && minor >= 2) || (major === 22 && minor >= 12)
// Before 20.17 and 22.6, a request that fails publishes nothing.
const publishesErrors = major > 22 || (major === 22 && minor >= 6) || (major < 22 && minor >= 17)

// A request with array headers has them only as the text that will be sent.
const HOST_LINE = /\r\nhost: ?([^\r\n]{1,255})/i

const SERVERS_MAX = 256
const HOST_HEADERS_MAX = 16 // for each host
const CANCEL = 8 // the error code of an HTTP/2 stream that this side cancelled

const kUndici = Symbol('light-trace.undici')

const HEADERS = {
  read (request, name) {
    const value = request.getHeader(name)
    return Array.isArray(value) ? value.join(', ') : value
  },
  write: (request, name, value) => request.setHeader(name, value),
  remove: (request, name) => request.removeHeader(name)
}

const call = new HttpCall()
const servers = new Map() // host -> Host header -> RemoteServer

const httpSubscribers = [
  [canInject ? 'http.client.request.created' : 'http.client.request.start', onMessage(onStart)],
  ['http.client.response.finish', onMessage(onResponse)],
  ['http.client.request.error', onMessage(onError)],
  ['http2.client.stream.created', onMessage(onStream)],
  ['http2.client.stream.finish', onMessage(onStreamResponse)],
  ['http2.client.stream.error', onMessage(({ stream, error }) => endWithError(stream, error))],
  ['http2.client.stream.close', onMessage(onStreamClose)]
]

// HOT, once per call.
function onStart ({ request }) {
  if (typeof request?.getHeader !== 'function' || request[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (tracer === null || !tracer.outbound?.http) return
  readCall(request)
  // Array headers, and those of a request with `Expect`, are text already, so nothing can be added to them.
  const span = startHttpCall(tracer, context, call, request, canInject && !request.headersSent ? HEADERS : null)
  request[kCall] = span
  if (span === null) return
  if (!publishesErrors || request.method === 'CONNECT' || request.getHeader('upgrade') !== undefined) request.once('close', onClose)
}

function readCall (request) {
  const { method, protocol, socketPath, path } = request
  const host = typeof request.host === 'string' ? request.host : 'localhost'
  const shownHost = host.includes(':') ? `[${host}]` : host
  const scheme = protocol === 'https:' ? 'https' : 'http'
  call.method = method
  call.target = path
  call.server = typeof socketPath === 'string'
    ? serverOf(socketPath, undefined, `${scheme}://${shownHost}`)
    : serverOf(shownHost, request.getHeader('host') ?? HOST_LINE.exec(request._header)?.[1], scheme)
}

/** The server that is called. If `source` is an origin and not just a scheme, `host` is the path of a Unix socket. HOT */
function serverOf (host, sent, source) {
  let found = servers.get(host)
  if (found === undefined) {
    if (servers.size === SERVERS_MAX) servers.clear()
    servers.set(host, found = new Map())
  }
  let server = found.get(sent)
  if (server === undefined || server.source !== source) {
    if (found.size === HOST_HEADERS_MAX) found.clear()
    found.set(sent, server = readServer(host, sent, source))
  }
  return server
}

// Only a Host header that Node created is used for the port; a user's may name another server.
function readServer (host, sent, source) {
  if (source.includes('://')) return new RemoteServer(host, -1, source, source)
  const isOwn = typeof sent === 'string' && sent.startsWith(host)
  const { name, port } = splitHost(isOwn ? sent : host, source)
  return new RemoteServer(name, isOwn || sent === undefined ? port : -1, `${source}://${isOwn && name !== '' ? sent : host}`, source)
}

// HOT, once per call.
function onResponse ({ request, response }) {
  if (!request?.[kCall] || !response) return
  const socket = response.socket ?? request.socket
  if (socket) setPeer(request, socket, socket, response.httpVersion)
  endWithStatus(request, response.statusCode)
}

function onError ({ request, error }) {
  // Before 22.12, a request that was never sent publishes only this.
  if (!canInject) onStart({ request })
  endWithError(request, error)
}

/** Ends the span of a request that was tunnelled, upgraded, or closed without an event. `this` is the request. */
function onClose () {
  const status = this.res?.statusCode
  if (status !== undefined) endWithStatus(this, status)
  else endWithError(this, this.errored ?? { code: 'ECONNRESET' })
}

// node:http2

function onStream ({ stream, headers }) {
  if (stream === null || typeof stream !== 'object' || headers === null || typeof headers !== 'object' || stream[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (tracer === null || !tracer.outbound?.http || isUndicis(stream.session)) return
  const authority = headers[':authority'] ?? headers.host ?? ''
  call.method = headers[':method'] ?? 'GET'
  call.server = serverOf(authority, authority, headers[':scheme'] === 'http' ? 'http' : 'https')
  call.target = String(headers[':path'] ?? '/')
  stream[kCall] = startHttpCall(tracer, context, call, stream, null)
}

/** Whether a session is undici's. Its HTTP/2 connections use node:http2 too, but are traced with its own channels. */
function isUndicis (session) {
  if (!session) return false
  session[kUndici] ??= Object.getOwnPropertySymbols(session).some(({ description }) => description === 'open streams')
  return session[kUndici]
}

function onStreamResponse ({ stream, headers }) {
  if (!stream?.[kCall] || !headers) return
  const { session } = stream
  if (session !== undefined) setPeer(stream, session, session.socket ?? {}, '2')
  endWithStatus(stream, headers[':status'])
}

/** Ends the span of a stream that either side reset without a response or an error. */
function onStreamClose ({ stream }) {
  endWithError(stream, { code: stream?.rstCode === CANCEL ? 'ABORT_ERR' : 'ERR_HTTP2_STREAM_ERROR' })
}

module.exports = { httpSubscribers }
