'use strict'

// The CLIENT span of an HTTP call, the same for node:http, undici and node:http2.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-client-span
//
// It ends when the response's headers are there, as the conventions allow: a body that nobody reads would
// otherwise keep it open.

const { redactQuery } = require('../span/redact')
const { errorType } = require('../span/exception')
const { cut } = require('../span/attributes')
const { KIND_CLIENT } = require('./calls')
const { knownMethods } = require('./semconv')

const STATUS_ERROR = 2
const METHOD_LENGTH_MAX = 64
const MESSAGE_LENGTH_MAX = 256

const defaultMethods = knownMethods(null)

/**
 * What a call says at its start. One per channel family, reused for each call and never kept.
 */
class CallFacts {
  constructor () {
    this.method = ''
    this.serverAddress = ''
    this.serverPort = -1
    this.url = '' // whole, without credentials, not redacted
    this.resendCount = 0
    this.methods = defaultMethods
  }
}

/** Starts the span, or null without a parent. HOT */
function startHttpCall (tracer, context, facts) {
  facts.methods = tracer.outbound.knownMethods
  return tracer.startCall(HTTP_CALL, facts, context)
}

function isKnown ({ method, methods }) {
  return methods.has(method)
}

function nameOf (facts) {
  return isKnown(facts) ? facts.method : 'HTTP'
}

// HOT, once per recorded call. Budget: 1 array.
function attributesOf (facts) {
  const { method, serverAddress, serverPort, url, resendCount } = facts
  const list = ['http.request.method', method, 'url.full', redactUrl(url)]
  if (serverAddress !== '') list.push('server.address', serverAddress)
  if (serverPort !== -1) list.push('server.port', serverPort)
  if (resendCount > 0) list.push('http.request.resend_count', resendCount)
  if (!isKnown(facts)) {
    list[1] = '_OTHER'
    list.push('http.request.method_original', cut(String(method), METHOD_LENGTH_MAX))
  }
  return list
}

const HTTP_CALL = { kind: KIND_CLIENT, name: nameOf, attributes: attributesOf }

/** Ends the span with a response's status. HOT */
function endWithStatus (span, status) {
  if (Number.isInteger(status) && status > 0) span.setAttribute('http.response.status_code', status)
  if (status >= 400) {
    span.setAttribute('error.type', String(status))
    span.setStatus({ code: STATUS_ERROR })
  }
  span.end()
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

function redactUrl (url) {
  const mark = url.indexOf('?')
  if (mark === -1) return url
  const query = url.slice(mark + 1)
  const redacted = redactQuery(query)
  return redacted === query ? url : url.slice(0, mark + 1) + redacted
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

/** Where the connection goes, on the span. */
function setPeer (span, socket, protocolVersion) {
  const { remoteAddress, remotePort } = socket
  if (typeof remoteAddress === 'string') {
    span.setAttribute('network.peer.address', remoteAddress)
    if (Number.isInteger(remotePort)) span.setAttribute('network.peer.port', remotePort)
  }
  if (protocolVersion !== '') span.setAttribute('network.protocol.version', protocolVersion)
}

module.exports = { CallFacts, startHttpCall, endWithStatus, endWithError, isAbort, urlOf, setPeer }
