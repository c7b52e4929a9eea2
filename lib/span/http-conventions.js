'use strict'

// From Fastify's request to what the HTTP conventions ask for.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/

const { RouteInfo, PeerInfo } = require('./http-info')
const { cut } = require('./attributes')

let forwarded = null // loaded where Fastify's trustProxy is on

const KNOWN_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY']

const USER_AGENT_LENGTH_MAX = 512
const HOST_LENGTH_MAX = 255 // DNS
const ADDRESS_LENGTH_MAX = 64
const SLASH = 0x2f

// What a host or address may consist of; brackets and colons for IPv6.
const HOST = /^[\w.\-:[\]%]+$/
const SCHEME = /^[a-z][a-z0-9+.-]{0,15}$/

/** RouteInfo of a method on a route; unknown methods share one. */
function routeInfo (method, route, knownMethods) {
  return knownMethods.has(method)
    ? new RouteInfo(method, '', route)
    : new RouteInfo('_OTHER', cut(method, ADDRESS_LENGTH_MAX), route)
}

/** @param {string[] | null} override of OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS */
function knownMethods (override) {
  return new Set(override === null ? KNOWN_METHODS : override)
}

/**
 * The request target that the client sent, as path and query: before Fastify's `rewriteUrl`, and without
 * the scheme and host of the absolute form. HOT
 */
function requestTarget ({ url, originalUrl }) {
  const target = originalUrl === undefined ? url : originalUrl
  return target.charCodeAt(0) === SLASH ? target : pathOf(target)
}

function pathOf (target) {
  const scheme = target.indexOf('://')
  if (scheme === -1) return target // `OPTIONS *`
  const end = target.slice(scheme + 3).search(/[/?]/)
  if (end === -1) return '/'
  const rest = target.slice(scheme + 3 + end)
  return rest.charCodeAt(0) === SLASH ? rest : `/${rest}`
}

const kPeer = Symbol('light-trace.peer')

/**
 * PeerInfo of a request: those of the connection's previous request where nothing differs, as it is on
 * nearly every keep-alive request. HOT
 */
function peerInfo (raw, headers, valueLengthMax) {
  const { socket } = raw
  if (socket === null || socket === undefined) return readPeer(raw, undefined, valueLengthMax).info
  const peer = socket[kPeer]
  // Not `httpVersion`: a string that Node makes anew for each request.
  if (peer !== undefined && peer.host === headers.host && peer.userAgent === headers['user-agent'] &&
    peer.versionMajor === raw.httpVersionMajor && peer.versionMinor === raw.httpVersionMinor) return peer.info
  const fresh = readPeer(raw, socket, valueLengthMax)
  socket[kPeer] = fresh
  return fresh.info
}

/** The same where Fastify's trustProxy is on: client, host and scheme come from the forwarded headers. */
function forwardedPeerInfo (request, valueLengthMax) {
  if (forwarded === null) forwarded = require('./forwarded')
  const { raw } = request
  const { socket, headers } = raw
  const source = headers.forwarded !== undefined && headers['x-forwarded-for'] === undefined ? byForwarded(request) : request
  const ip = attempt(() => source.ip)
  const host = attempt(() => source.host)
  const protocol = attempt(() => source.protocol)
  const peer = socket?.[kPeer]
  if (peer !== undefined && peer.ip === ip && peer.host === host && peer.protocol === protocol &&
    peer.userAgent === raw.headers['user-agent'] &&
    peer.versionMajor === raw.httpVersionMajor && peer.versionMinor === raw.httpVersionMinor) return peer.info
  const fresh = readPeer(raw, socket, valueLengthMax, ip, host, protocol)
  if (socket) socket[kPeer] = fresh
  return fresh.info
}

/** The request as it would be with the X-Forwarded-* headers that say the same: Fastify's getters know whom to trust. */
function byForwarded (request) {
  const { headers, socket } = request.raw
  const translated = forwarded.asForwardedHeaders(headers.forwarded, headers)
  if (translated === null) return request
  return Object.create(Object.getPrototypeOf(request), { raw: { value: { headers: translated, socket, connection: socket } } })
}

/** What the info were made from, to tell whether they still hold. */
class Peer {
  constructor (info, host, userAgent, versionMajor, versionMinor, ip, protocol) {
    this.info = info
    this.host = host
    this.userAgent = userAgent
    this.versionMajor = versionMajor
    this.versionMinor = versionMinor
    this.ip = ip
    this.protocol = protocol
  }
}

function readPeer (raw, socket, valueLengthMax, ip, forwardedHost, protocol) {
  const { headers, httpVersion, httpVersionMajor, httpVersionMinor } = raw
  const peerAddress = address(socket?.remoteAddress)
  const scheme = schemeOf(protocol, socket)
  const host = forwardedHost ?? headers.host
  const { name, port } = splitHost(host ?? headers[':authority'], scheme)
  const info = new PeerInfo(
    scheme, protocolVersion(httpVersion),
    typeof ip === 'string' ? forwarded.withoutPort(ip) || peerAddress : peerAddress,
    peerAddress, Number.isInteger(socket?.remotePort) ? socket.remotePort : -1,
    name, port, userAgent(headers['user-agent'], Math.min(valueLengthMax, USER_AGENT_LENGTH_MAX))
  )
  return new Peer(info, host, headers['user-agent'], httpVersionMajor, httpVersionMinor, ip, protocol)
}

function schemeOf (protocol, socket) {
  const scheme = typeof protocol === 'string' ? protocol.toLowerCase() : ''
  if (SCHEME.test(scheme)) return scheme
  return socket?.encrypted === true ? 'https' : 'http'
}

/** '2.0' is written '2'; '1.0' and '1.1' as they are. */
function protocolVersion (httpVersion) {
  if (httpVersion === '1.1') return '1.1' // one string for all connections: it is compared with each request's
  if (httpVersion === '2.0') return '2'
  return typeof httpVersion === 'string' ? httpVersion : ''
}

/** Host and port of a Host header. What cannot be one is left out rather than passed on. */
function splitHost (host, scheme) {
  if (typeof host !== 'string' || host.length > HOST_LENGTH_MAX || !HOST.test(host)) return { name: '', port: -1 }
  const colon = host.lastIndexOf(':')
  const bracket = host.lastIndexOf(']')
  const hasPort = colon > bracket && (bracket !== -1 || host.indexOf(':') === colon)
  const name = hasPort ? host.slice(0, colon) : host
  const port = hasPort ? portOf(host.slice(colon + 1)) : defaultPort(scheme)
  return {
    name: name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name,
    port
  }
}

function portOf (text) {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0 // Number alone takes '0x50' and '1e2'
  return port > 0 && port < 65536 ? port : -1
}

function defaultPort (scheme) {
  return scheme === 'https' ? 443 : scheme === 'http' ? 80 : -1
}

/** An address without an IPv6 zone. */
function address (value) {
  if (typeof value !== 'string' || value.length > ADDRESS_LENGTH_MAX || !HOST.test(value)) return ''
  const zone = value.indexOf('%')
  return zone === -1 ? value : value.slice(0, zone)
}

function userAgent (value, lengthMax) {
  return typeof value === 'string' ? cut(value, lengthMax) : ''
}

function attempt (read) {
  try {
    return read()
  } catch {
    return undefined
  }
}

module.exports = { routeInfo, knownMethods, requestTarget, peerInfo, forwardedPeerInfo, splitHost }
