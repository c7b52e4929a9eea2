'use strict'

// The CLIENT span of an HTTP call, the same for node:http, undici and node:http2.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-client-span
//
// It ends when the response's headers are there, as the conventions allow: a body that nobody reads would
// otherwise keep it open.

const { errorType } = require('../span/exception')
const { CallInfo } = require('../span/call-info')
const { cut, toObject } = require('../span/attributes')
const { KIND_CLIENT } = require('./calls')
const { knownMethods } = require('../span/http-conventions')

const STATUS_ERROR = 2
const METHOD_LENGTH_MAX = 64
const MESSAGE_LENGTH_MAX = 256
const METHODS_MAX = 32 // of a server; PEERS_MAX of a connection
const PEERS_MAX = 8
const ORIGIN_LENGTH_MAX = 512

const defaultMethods = knownMethods(null)

/** Where calls go, and what those of one method have in common. */
class RemoteServer {
  #calls = new Map() // method → CallInfo, whose URLs begin with `origin`
  #others = new Map() // method → CallInfo of calls through a proxy and the like, whose URLs do not
  #methods = defaultMethods

  /**
   * @param {string} address
   * @param {number} port -1: unknown
   * @param {string} origin of the URLs, without credentials
   * @param {string} [source] what these were read from, beyond what it is cached under
   */
  constructor (address, port, origin, source = '') {
    this.address = address
    this.port = port
    this.origin = origin
    this.source = source
  }

  /** HOT */
  infoOf (method, methods, isOnOrigin) {
    if (methods !== this.#methods) { // of an app with methods of its own
      this.#methods = methods
      this.#calls.clear()
      this.#others.clear()
    }
    const calls = isOnOrigin ? this.#calls : this.#others
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

/** What a call says at its start. One for each kind of client, filled anew for each call and never kept. */
class HttpCall {
  constructor () {
    this.method = ''
    this.server = null
    this.target = '' // as it is sent: a path on the server's origin, a whole URL (to a proxy), or an authority (CONNECT)
    this.resendCount = 0
    this.methods = defaultMethods
    this.redactor = null
  }

  /** HOT */
  get isOnOrigin () {
    return this.target.charCodeAt(0) === 0x2f && this.server.origin.length < ORIGIN_LENGTH_MAX
  }

  /** The whole URL, without credentials, not redacted. */
  get url () {
    return urlOf(this.server.origin, this.target)
  }
}

// HOT, once per recorded call. Budget: nothing, where target and server are as usual.
const HTTP_CALL = {
  kind: KIND_CLIENT,
  info: (call) => call.server.infoOf(call.method, call.methods, call.isOnOrigin),
  target: (call) => call.redactor.redactUrl(call.target),
  attributes (call) {
    if (call.isOnOrigin) return call.resendCount > 0 ? ['http.request.resend_count', call.resendCount] : null
    const list = ['url.full', call.redactor.redactUrl(call.url)]
    if (call.resendCount > 0) list.push('http.request.resend_count', call.resendCount)
    return list
  }
}

/** Starts the span, or null without a parent. HOT */
function startHttpCall (tracer, context, call) {
  call.methods = tracer.outbound.knownMethods
  call.redactor = tracer.redactor
  return tracer.startCall(HTTP_CALL, call, context)
}

/** Ends the span with a response's status. HOT */
function endWithStatus (span, status) {
  if (Number.isInteger(status) && status > 0) setResponse(span, status)
  if (status >= 400) span.setStatus({ code: STATUS_ERROR })
  span.end()
}

function setResponse (span, status) {
  const { info } = span
  const shared = info === undefined || info === null ? null : info.withStatus(status, responseAttributes)
  if (shared !== null) span.info = shared
  else span.setAttributes(toObject(responseAttributes(status)))
}

function responseAttributes (status) {
  const list = ['http.response.status_code', status]
  if (status >= 400) list.push('error.type', String(status))
  return list
}

/** Ends the span of a call that got no response. */
function endWithError (span, error) {
  if (!isAbort(error)) {
    span.setAttribute('error.type', errorType(error))
    span.setStatus({ code: STATUS_ERROR, message: messageOf(error) })
  }
  span.end()
}

/** A call that its own caller gave up is no error of the called. A timeout is one. */
function isAbort (error) {
  try {
    const { name, code } = error
    return name === 'AbortError' || code === 'ABORT_ERR' || code === 'UND_ERR_ABORTED'
  } catch {
    return false
  }
}

function messageOf (error) {
  try {
    return typeof error.message === 'string' ? cut(error.message, MESSAGE_LENGTH_MAX) : undefined
  } catch {
    return undefined
  }
}

/**
 * The whole URL of a request target on an origin. The target may be a path, a whole URL (to a proxy), or an
 * authority (CONNECT).
 */
function urlOf (origin, target) {
  if (target.charCodeAt(0) === 0x2f) return origin + target
  const scheme = target.indexOf('://')
  if (scheme === -1) return origin.slice(0, origin.indexOf('//') + 2) + target
  return withoutCredentials(target, scheme + 3)
}

function withoutCredentials (url, authority) {
  let end = url.length
  for (let i = authority; i < url.length; i++) {
    const char = url.charCodeAt(i)
    if (char === 0x2f || char === 0x3f || char === 0x23) {
      end = i
      break
    }
  }
  const at = url.lastIndexOf('@', end)
  return at < authority ? url : `${url.slice(0, authority)}REDACTED:REDACTED${url.slice(at)}`
}

const kPeers = Symbol('light-trace.peers')

/**
 * Says on the span where the connection goes. The calls of a connection share that too.
 * @param {object} owner of the connection, on which what they share is kept
 */
function setPeer (span, owner, socket, protocolVersion) {
  const { info } = span
  if (info === undefined || info === null) {
    span.setAttributes(toObject(peerAttributes(socket, protocolVersion)))
    return
  }
  let peers = owner[kPeers]
  if (peers === undefined) peers = owner[kPeers] = []
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

module.exports = { RemoteServer, HttpCall, startHttpCall, endWithStatus, endWithError, isAbort, setPeer }
