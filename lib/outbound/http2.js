'use strict'

// Calls by node:http2, where Node publishes them (22.17 and later). The headers are fixed before the channel
// speaks, so nothing can be added: request.trace.inject() is the way to propagate.

const { kCall, activeContext, tracerIn, isSuppressed } = require('./calls')
const { RemoteServer, HttpCall, startHttpCall, endWithStatus, endWithError, setPeer } = require('./client-span')
const { splitHost } = require('../span/http-conventions')

const call = new HttpCall()

function onCreated ({ stream, headers }) {
  if (stream[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (tracer === null || !tracer.outbound?.http || isSuppressed(context) || isUndicis(stream.session)) return
  readCall(stream.session, headers)
  const span = startHttpCall(tracer, context, call)
  stream[kCall] = span !== null && span.isRecording() ? span : null
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

const kServer = Symbol('light-trace.server')
const kUndici = Symbol('light-trace.undici')

/** undici's own HTTP/2 connections run on node:http2 too; undici's channels speak for them. */
function isUndicis (session) {
  if (session === undefined || session === null) return false
  let is = session[kUndici]
  if (is === undefined) {
    is = Object.getOwnPropertySymbols(session).some(({ description }) => description === 'open streams')
    session[kUndici] = is
  }
  return is
}

function onFinish ({ stream, headers }) {
  const span = take(stream)
  if (span === null) return
  const { session } = stream
  if (session !== undefined) setPeer(span, session, session.socket ?? {}, '2')
  endWithStatus(span, headers[':status'])
}

function onError ({ stream, error }) {
  const span = take(stream)
  if (span !== null) endWithError(span, error)
}

/** Without a response and without an error: reset by one of the two. */
function onClose ({ stream }) {
  const span = take(stream)
  if (span !== null) endWithError(span, stream.rstCode === 8 ? { code: 'ABORT_ERR' } : { code: 'ERR_HTTP2_STREAM_ERROR' })
}

function take (stream) {
  const span = stream[kCall]
  if (span === undefined || span === null) return null
  stream[kCall] = null
  return span
}

/** Of the channels in node-clients.js, in their order. */
const subscribers = [onCreated, onFinish, onError, onClose]

module.exports = { subscribers }
