'use strict'

// Calls by node:http2, where Node publishes them (22.17 and later). The headers are fixed before the channel
// speaks, so nothing can be added: request.trace.inject() is the way to propagate.

const { guarded } = require('../runtime/subscriptions')
const { kCall, activeContext, tracerIn } = require('./calls')
const { RemoteServer, HttpCall, startHttpCall, endWithStatus, endWithError, setPeer } = require('./client-span')
const { splitHost } = require('../http/conventions')

const CANCEL = 8 // the error code of a stream that its own side gave up

const kServer = Symbol('light-trace.server')
const kUndici = Symbol('light-trace.undici')

const call = new HttpCall()

const http2Subscribers = [
  ['http2.client.stream.created', guarded(onCreated)],
  ['http2.client.stream.finish', guarded(onFinish)],
  ['http2.client.stream.error', guarded(onError)],
  ['http2.client.stream.close', guarded(onClose)]
]

function onCreated ({ stream, headers }) {
  if (stream[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (tracer === null || !tracer.outbound?.http || isUndicis(stream.session)) return
  readCall(stream.session, headers)
  stream[kCall] = startHttpCall(tracer, context, call, stream, null)
}

function readCall (session, headers) {
  const scheme = headers[':scheme'] === 'http' ? 'http' : 'https'
  const authority = headers[':authority'] ?? headers.host ?? ''
  let server = session?.[kServer]
  const origin = `${scheme}://${authority}`
  if (server === undefined || server.source !== origin) {
    const { name, port } = splitHost(authority, scheme)
    server = new RemoteServer(name, port, origin, origin)
    if (session) session[kServer] = server
  }
  call.method = headers[':method'] ?? 'GET'
  call.server = server
  call.target = String(headers[':path'] ?? '/')
}

/** Whether a session is of undici, whose HTTP/2 connections run on node:http2 too: its own channels speak for them. */
function isUndicis (session) {
  if (session === undefined || session === null) return false
  if (session[kUndici] === undefined) {
    session[kUndici] = Object.getOwnPropertySymbols(session).some(({ description }) => description === 'open streams')
  }
  return session[kUndici]
}

function onFinish ({ stream, headers }) {
  const { session } = stream
  if (session !== undefined) setPeer(stream, session, session.socket ?? {}, '2')
  endWithStatus(stream, headers[':status'])
}

function onError ({ stream, error }) {
  endWithError(stream, error)
}

/** Ends the span of a stream without a response and without an error: one of the two sides reset it. */
function onClose ({ stream }) {
  endWithError(stream, { code: stream.rstCode === CANCEL ? 'ABORT_ERR' : 'ERR_HTTP2_STREAM_ERROR' })
}

module.exports = { http2Subscribers }
