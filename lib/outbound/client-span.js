'use strict'

// The CLIENT span of an HTTP call, the same for node:http, undici and node:http2.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-client-span
//
// It ends when the response's headers have arrived, which the conventions allow: otherwise an unread body would keep it open.

const { REQUEST_KEY, SPAN_KEY, traceOf, BAGGAGE_KEY } = require('../context/trace-context.js')
const { CallInfo, knownMethods, splitHost } = require('../http/conventions.js')
const { cut, read, toObject, errorType } = require('../span/attributes.js')
const { STATUS_ERROR } = require('../span/recording-span.js')
const { kCall, KIND_CLIENT, isSuppressed, takeSpan } = require('./calls.js')
const { serializeBaggage, besideSentrys } = require('../context/baggage.js')
const { isCopied, isUntrusted } = require('../context/request-context.js')
const { injectForeign } = require('../otel/propagators.js')

const METHOD_LENGTH_MAX = 64
const MESSAGE_LENGTH_MAX = 256
const METHODS_MAX = 32 // for each server
const PEERS_MAX = 8 // for each connection
const ORIGIN_LENGTH_MAX = 512
const ORIGINS_MAX = 256
const SLASH = 0x2f

const ABORTS = new Set(['ABORT_ERR', 'UND_ERR_ABORTED', 'ERR_CANCELED']) // of Node, undici, and axios or got

const kPeers = Symbol('light-trace.peers')
const defaultMethods = knownMethods(null)

/** A server that is called, with the CallInfo that calls with the same method share. */
class RemoteServer {
  #calls = [new Map(), new Map()] // method -> CallInfo: for other targets (as through a proxy), and for paths on `origin`
  #methods = defaultMethods

  constructor (address, port, origin, source = '') {
    this.address = address
    this.port = port // -1: unknown
    this.origin = origin // of the URLs, without credentials
    this.source = source // what these were read from, if it is not the key of the cache
  }

  /** The CallInfo that calls with the same method share. HOT */
  infoOf (method, methods, isOnOrigin) {
    if (methods !== this.#methods) { // an app that defines its own known methods
      this.#methods = methods
      for (const calls of this.#calls) calls.clear()
    }
    const calls = this.#calls[isOnOrigin ? 1 : 0]
    return calls.get(method) ?? this.#add(calls, method, methods, isOnOrigin ? this.origin : '')
  }

  #add (calls, method, methods, origin) {
    const isKnown = methods.has(method)
    const list = ['http.request.method', isKnown ? method : '_OTHER']
    if (!isKnown) list.push('http.request.method_original', cut(String(method), METHOD_LENGTH_MAX))
    if (this.address !== '') list.push('server.address', this.address)
    if (this.port !== -1) list.push('server.port', this.port)
    const info = new CallInfo(KIND_CLIENT, isKnown ? method : 'HTTP', list, origin)
    if (calls.size === METHODS_MAX) calls.clear()
    calls.set(method, info)
    return info
  }
}

/** The data of a call at its start. There is one object for each kind of client, filled again for each call and never kept. */
class HttpCall {
  method = ''
  server = null
  target = '' // as sent: a path on the server's origin, a whole URL (to a proxy), or an authority (CONNECT)
  resendCount = 0
  methods = defaultMethods
  redactor = null

  /** Whether the target is a path on the server's origin, as for most calls. HOT */
  get isOnOrigin () {
    return this.target.charCodeAt(0) === SLASH && this.server.origin.length < ORIGIN_LENGTH_MAX
  }

  /** The whole URL, without credentials, not redacted. */
  get url () {
    const { target, server: { origin } } = this
    if (target.charCodeAt(0) === SLASH) return origin + target
    const scheme = target.indexOf('://')
    return scheme === -1 ? origin.slice(0, origin.indexOf('//') + 2) + target : withoutCredentials(target, scheme + 3)
  }
}

const servers = new Map() // origin -> RemoteServer

/** The server of a URL's origin. HOT, once per call of undici */
function serverOfOrigin (origin) {
  let server = servers.get(origin)
  if (server === undefined) {
    const authority = origin.indexOf('://') + 3
    const { name, port } = splitHost(origin.slice(authority), origin.slice(0, authority - 3).toLowerCase())
    if (servers.size === ORIGINS_MAX) servers.clear()
    servers.set(origin, server = new RemoteServer(name, port, origin))
  }
  return server
}

/** The server of a whole URL that is sent to a proxy; undefined for other targets, such as that of CONNECT. */
function serverOfTarget (target) {
  const scheme = target.indexOf('://')
  if (scheme === -1) return undefined
  const length = target.slice(scheme + 3).search(/[/?#]/)
  const authority = target.slice(scheme + 3, length === -1 ? undefined : scheme + 3 + length)
  const origin = target.slice(0, scheme + 3) + authority.slice(authority.lastIndexOf('@') + 1)
  return origin.length > ORIGIN_LENGTH_MAX ? undefined : serverOfOrigin(origin)
}

// HOT, once per recorded call. Budget: nothing, where target and server are as usual.
const HTTP_CALL = {
  kind: KIND_CLIENT,
  info: (call) => call.server.infoOf(call.method, call.methods, call.isOnOrigin),
  target: (call) => call.redactor.redactUrl(call.target),
  attributes (call) {
    if (call.isOnOrigin && call.resendCount === 0) return null
    const list = call.isOnOrigin ? [] : ['url.full', call.redactor.redactUrl(call.url)]
    if (call.resendCount > 0) list.push('http.request.resend_count', call.resendCount)
    return list
  }
}

/**
 * Starts the span and writes the call's trace headers.
 * HOT, once per call.
 * @param {Tracer} tracer
 * @param {Context} context of the calling code
 * @param {HttpCall} call
 * @param {object} request the client's own object for the call
 * @param {{ read, write, remove } | null} headers access to its headers; null if none can be added
 * @returns {Span | null} null if nothing is recorded
 */
function startHttpCall (tracer, context, call, request, headers) {
  const isOff = isSuppressed(context)
  // An ignored or disabled request passes on the headers of a trusted caller unchanged. Other suppressed traffic is our own.
  if (isOff && !(/** @type {RequestContext | undefined} */ (context.getValue(REQUEST_KEY)))?.suppressed) return null
  if (call.target.charCodeAt(0) !== SLASH) call.server = serverOfTarget(call.target) ?? call.server
  call.methods = tracer.outbound.knownMethods
  call.redactor = tracer.redactor
  const span = isOff ? context.getValue(SPAN_KEY) : tracer.startCall(HTTP_CALL, call, context)
  if (span === null) return null
  if (headers !== null && mayPropagate(tracer, call)) {
    try {
      propagate(tracer, context, span, request, headers)
    } catch (error) { // thrown by a method that is not ours; the call keeps its span
      tracer.report.failed('LT_WARN_PROPAGATOR', 'the trace headers of a call could not be written', error)
    }
  }
  return !isOff && span.isRecording() ? span : null
}

/** Ends the span of `request`, if it has one, with a response's status. HOT */
function endWithStatus (request, status) {
  const span = takeSpan(request)
  if (span === null) return
  if (Number.isInteger(status) && status > 0) {
    const shared = span.info?.withStatus(status, responseAttributes) ?? null
    if (shared !== null) span.info = shared
    else span.setAttributes(toObject(responseAttributes(status)))
  }
  if (status >= 400) span.setStatus({ code: STATUS_ERROR })
  span.end()
}

function responseAttributes (status) {
  const list = ['http.response.status_code', status]
  if (status >= 400) list.push('error.type', String(status))
  return list
}

/** Ends the span of `request`, if it has one, without a response. */
function endWithError (request, error) {
  const span = takeSpan(request)
  if (span === null) return
  if (!isAbort(error)) {
    const message = read(error, 'message')
    span.setAttribute('error.type', errorType(error))
    span.setStatus({ code: STATUS_ERROR, message: typeof message === 'string' ? cut(message, MESSAGE_LENGTH_MAX) : undefined })
  }
  span.end()
}

/** Whether the caller itself aborted the call, which is not an error of the called service. A timeout is an error. */
function isAbort (error) {
  return ABORTS.has(read(error, 'code')) || read(error, 'name') === 'AbortError'
}

function withoutCredentials (url, authority) {
  const length = url.slice(authority).search(/[/?#]/)
  const at = url.lastIndexOf('@', length === -1 ? url.length : authority + length)
  return at < authority ? url : `${url.slice(0, authority)}REDACTED:REDACTED${url.slice(at)}`
}

/**
 * Sets the connection's peer on the span of `request`, if it has one. The calls of a connection share these attributes, which are kept
 * on its `owner`. HOT, once per call.
 */
function setPeer (request, owner, socket, protocolVersion) {
  const span = request?.[kCall]
  if (span === undefined || span === null) return
  const { info } = span
  if (info === undefined || info === null) {
    span.setAttributes(toObject(peerAttributes(socket, protocolVersion)))
    return
  }
  const peers = (owner[kPeers] ??= [])
  for (let i = 0; i < peers.length; i += 3) {
    if (peers[i] === info && peers[i + 1] === protocolVersion) {
      span.info = peers[i + 2]
      return
    }
  }
  if (peers.length >= PEERS_MAX * 3) peers.length = 0
  span.info = info.with(peerAttributes(socket, protocolVersion))
  peers.push(info, protocolVersion, span.info)
}

function peerAttributes ({ remoteAddress, remotePort }, protocolVersion) {
  const list = []
  if (typeof remoteAddress === 'string') {
    list.push('network.peer.address', remoteAddress)
    if (Number.isInteger(remotePort)) list.push('network.peer.port', remotePort)
  }
  if (protocolVersion !== '') list.push('network.protocol.version', protocolVersion)
  return list
}

// The headers of an outgoing call: traceparent with the CLIENT span's id as the parent, tracestate and baggage. A header that the user
// set is kept. One that a proxy copied from the request is replaced: only our tracestate fits our traceparent, and headers of an
// untrusted caller must not reach an internal service.

/**
 * Writes the headers of a call.
 * @param {Tracer} tracer
 * @param {Context} context of the calling code
 * @param {Span} span the parent of the called service's span
 * @param {object} call
 * @param {{ read (call, name): string | undefined, write (call, name, value), remove (call, name) }} headers access to the call's headers
 */
// HOT, once per outgoing call. Budget: 1 string.
function propagate (tracer, context, span, call, headers) {
  const request = /** @type {RequestContext | undefined} */ (context.getValue(REQUEST_KEY))
  const caller = request?.caller
  if (tracer.propagator !== null) {
    injectForeign(tracer, context.setValue(SPAN_KEY, span), call, headers, caller)
    return
  }
  writeTrace(caller, traceOf(span), call, headers)
  writeBaggage(caller, context, call, headers)
}

function writeTrace (caller, trace, call, headers) {
  const there = headers.read(call, 'traceparent')
  if (there !== undefined && !isCopied(caller, 'traceparent', there)) return
  // Most calls have no copied headers, and are not searched for more.
  const mayBeCopied = there !== undefined || isUntrusted(caller)
  if (trace !== undefined) headers.write(call, 'traceparent', trace.traceparent)
  else if (mayBeCopied) headers.remove(call, 'traceparent')
  if (trace !== undefined && trace.tracestate !== '') headers.write(call, 'tracestate', trace.tracestate)
  else if (mayBeCopied) headers.remove(call, 'tracestate')
}

function writeBaggage (caller, context, call, headers) {
  const baggage = context.getValue(BAGGAGE_KEY)
  const isEmpty = baggage === undefined || baggage === null
  if (isEmpty && !isUntrusted(caller)) return
  const there = headers.read(call, 'baggage')
  const mustGo = there !== undefined && isUntrusted(caller) && isCopied(caller, 'baggage', there)
  let text = isEmpty ? '' : serializeBaggage(baggage)
  if (there !== undefined && !mustGo) {
    text = text === '' ? '' : besideSentrys(there, text) ?? ''
    if (text === there) return
  }
  if (text !== '') headers.write(call, 'baggage', text)
  else if (mustGo) headers.remove(call, 'baggage')
}

/** Whether trace headers may be added to the call. The user's function decides by the URL; if it throws, the answer is no. */
function mayPropagate (tracer, call) {
  const { propagateTo } = tracer.outbound
  if (propagateTo === null) return true
  const what = 'the option outbound.propagateTo failed; calls go on without trace headers'
  return tracer.report.attempt('LT_WARN_CALLBACK', what, () => propagateTo(call.url)) === true
}

module.exports = { RemoteServer, HttpCall, serverOfOrigin, startHttpCall, endWithStatus, endWithError, setPeer, propagate }
