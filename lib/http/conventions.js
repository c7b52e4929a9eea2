'use strict'

// From Fastify's request to what the HTTP conventions ask for: the infos of its route and of its connection.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/

const { isIP } = require('node:net')
const { attempt } = require('../runtime/report.js')
const { RouteInfo, Place, PeerInfo } = require('../span/http-info.js')
const { cut } = require('../span/attributes.js')

const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'])

const METHOD_LENGTH_MAX = 64
const USER_AGENT_LENGTH_MAX = 512
const HOST_LENGTH_MAX = 255 // DNS
const ADDRESS_LENGTH_MAX = 64
const FORWARDED_LENGTH_MAX = 4096
const SLASH = 0x2f

// What a host or address may consist of; brackets and colons for IPv6.
const HOST = /^[\w.\-:[\]%]+$/
const SCHEMES = ['http', 'https', 'ws', 'wss'] // behind a proxy a caller may write anything, and metrics have a series of each
const PORT = /^\d{1,5}$/ // Number alone takes '0x50' and '1e2'
const DEFAULT_PORTS = { __proto__: null, http: 80, https: 443 }

// Of Forwarded: token=token or token="quoted string", with ; between the pairs of one proxy and , between proxies. A caller writes
// it: behind each loop comes what the loop cannot take, so that nothing is read twice.
const PAIR = /[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^",; \t]*))[ \t]*)?([;,]|$)/y

const kPeer = Symbol('light-trace.peer')

// The last places of callers by host: a service has one, or one for each tenant, and few proxies before it.
const HOSTS_MAX = 256
const PLACES_MAX = 8 // of a host
const lastPlaces = new Map() // host -> the last place, and behind it the others

/** RouteInfo of a method on a route; unknown methods share one. */
function routeInfo (method, route, knownMethods) {
  return knownMethods.has(method)
    ? new RouteInfo(method, '', route)
    : new RouteInfo('_OTHER', cut(method, METHOD_LENGTH_MAX), route)
}

/**
 * @param {string[] | null} override of OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS
 * @returns the same set for all applications without one: what their calls have in common is kept with it
 */
function knownMethods (override) {
  return override === null ? KNOWN_METHODS : new Set(override)
}

/** The target that the client sent, before `rewriteUrl`, without the scheme and host of the absolute form. HOT */
function requestTarget ({ url, originalUrl }) {
  const target = typeof originalUrl === 'string' ? originalUrl : url
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

/** PeerInfo of a request. HOT @param {import('../features/omit').Omission | null} [omit] */
function peerInfo (raw, response, headers, valueLengthMax, omit = null) {
  return peerOf(raw, response, headers, valueLengthMax, undefined, headers.host ?? headers[':authority'], undefined, omit)
}

/** The same where Fastify's trustProxy is on: client, host and scheme come from the forwarded headers. */
function forwardedPeerInfo (request, response, valueLengthMax, omit = null) {
  const { raw } = request
  const { headers } = raw
  const source = headers.forwarded !== undefined && headers['x-forwarded-for'] === undefined ? byForwarded(request) : request
  const ip = isShown('client.address', omit) ? attempt(() => source.ip) : undefined
  const isOwnHost = source === request && headers['x-forwarded-host'] === undefined
  const host = (isOwnHost ? undefined : attempt(() => source.host)) ?? headers.host ?? headers[':authority']
  return peerOf(raw, response, headers, valueLengthMax, ip, host, attempt(() => source.protocol), omit)
}

/** The PeerInfo of the connection's previous request where nothing differs, as on nearly every one. HOT */
function peerOf (raw, { shouldKeepAlive }, headers, valueLengthMax, ip, host, protocol, omit) {
  const { socket } = raw
  const before = socket?.[kPeer]
  const agent = headers['user-agent']
  const version = raw.httpVersionMajor * 10 + raw.httpVersionMinor // `httpVersion` is a string that Node makes anew for each request
  const isThere = before !== undefined && before.place.host === host && before.place.protocol === protocol && before.place.omit === omit
  if (isThere && before.ip === ip && before.agent === agent && before.version === version) return before
  const peer = isThere
    ? readPeer(raw, before.place, before.peerPort, version, ip, agent, valueLengthMax)
    : readConnection(raw, host, protocol, version, ip, agent, valueLengthMax, omit)
  // A connection that ends with this response is not written to: V8 adds a field to a socket in 2,000 instructions.
  if (socket && shouldKeepAlive !== false) socket[kPeer] = peer
  return peer
}

/** HOT, once for each other caller on a connection: behind a proxy with most requests. */
function readPeer (raw, place, peerPort, version, ip, agent, valueLengthMax) {
  const clientAddress = typeof ip === 'string' ? withoutPort(ip) || place.clientAddress : place.clientAddress
  const userAgent = typeof agent === 'string' && isShown('user_agent.original', place.omit) ? cut(agent, Math.min(valueLengthMax, USER_AGENT_LENGTH_MAX)) : ''
  return new PeerInfo(place, peerPort, version, protocolVersion(raw, version), ip, clientAddress, agent, userAgent)
}

/** HOT, once for each connection, and for each other host on it. */
function readConnection (raw, host, protocol, version, ip, agent, valueLengthMax, omit) {
  const { socket } = raw
  const peerPort = socket?.remotePort
  const hasPort = Number.isInteger(peerPort) && isShown('network.peer.port', omit)
  const place = placeFor(socket?.remoteAddress, hasPort, host, protocol, schemeOf(protocol, socket), omit)
  return readPeer(raw, place, hasPort ? peerPort : -1, version, ip, agent, valueLengthMax)
}

/** One of the last places, or a new one: before browsers each connection comes from another address, to a host that is known. */
function placeFor (address, hasPort, host, protocol, scheme, omit) {
  const last = lastPlaces.get(host)
  let sameHost
  let count = 0
  for (let place = last; place !== undefined; place = place.before, count++) {
    if (place.protocol !== protocol || place.scheme !== scheme || place.omit !== omit) continue
    if (place.address === address && place.hasPort === hasPort) return place
    sameHost = place
  }
  const { name, port } = sameHost === undefined ? splitHost(host, scheme) : { name: sameHost.serverAddress, port: sameHost.serverPort }
  const known = addressOf(address)
  const clientAddress = isShown('client.address', omit) ? known : ''
  const peerAddress = isShown('network.peer.address', omit) ? known : ''
  const serverAddress = isShown('server.address', omit) ? name : ''
  const serverPort = isShown('server.port', omit) ? port : -1
  const place = new Place(address, hasPort, host, protocol, scheme, omit, clientAddress, peerAddress, serverAddress, serverPort, count < PLACES_MAX ? last : undefined)
  if (host?.length > HOST_LENGTH_MAX) return place
  if (last === undefined && lastPlaces.size === HOSTS_MAX) lastPlaces.clear()
  lastPlaces.set(host, place)
  return place
}

function isShown (key, omit) { return omit === null || !omit.has(key) }

function schemeOf (protocol, socket) {
  const given = typeof protocol === 'string' ? protocol.toLowerCase() : ''
  // Not the caller's string: it is compared with each template's.
  return SCHEMES.find((scheme) => scheme === given) ?? (socket?.encrypted === true ? 'https' : 'http')
}

/** '2.0' is written '2'; '1.0' and '1.1' as they are. */
function protocolVersion (raw, version) {
  if (version === 11) return '1.1' // one string for all connections: it is compared with each request's
  const { httpVersion } = raw
  if (httpVersion === '2.0') return '2'
  return typeof httpVersion === 'string' ? httpVersion : ''
}

/** Returns an address without an IPv6 zone, '' for what is none. */
function addressOf (value) {
  return typeof value === 'string' && value.length <= ADDRESS_LENGTH_MAX && HOST.test(value) ? withoutZone(value) : ''
}

function withoutZone (address) {
  const mark = address.indexOf('%')
  return mark === -1 ? address : address.slice(0, mark)
}

/** Host and port of a Host header. What cannot be one is left out rather than passed on. */
function splitHost (text, scheme) {
  if (typeof text !== 'string' || text.length > HOST_LENGTH_MAX || !HOST.test(text)) return { name: '', port: -1 }
  const colon = text.lastIndexOf(':')
  const bracket = text.lastIndexOf(']')
  const hasPort = colon > bracket && (bracket !== -1 || text.indexOf(':') === colon)
  const name = hasPort ? text.slice(0, colon) : text
  return {
    name: name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name,
    port: hasPort ? portOf(text.slice(colon + 1)) : DEFAULT_PORTS[scheme] ?? -1
  }
}

function portOf (text) {
  const port = PORT.test(text) ? Number(text) : 0
  return port > 0 && port < 65536 ? port : -1
}

/** The request as it would be with the X-Forwarded-* headers that say the same: Fastify's getters know which proxies to trust. */
function byForwarded (request) {
  const { headers, socket } = request.raw
  const translated = asForwardedHeaders(headers.forwarded, headers)
  if (translated === null) return request
  return Object.create(Object.getPrototypeOf(request), { raw: { value: { headers: translated, socket, connection: socket } } })
}

/** RFC 7239's Forwarded as X-Forwarded-* headers; null where it cannot be read. https://www.rfc-editor.org/rfc/rfc7239 */
function asForwardedHeaders (header, headers) {
  if (typeof header !== 'string' || header.length > FORWARDED_LENGTH_MAX) return null
  const clients = []
  const said = { __proto__: null, for: '', host: headers['x-forwarded-host'], proto: headers['x-forwarded-proto'] }
  let hasPairs = false
  PAIR.lastIndex = 0
  for (;;) {
    const match = PAIR.exec(header)
    if (match === null) return null
    const [, name, quoted, token, end] = match
    if (name !== undefined) said[name.toLowerCase()] = quoted === undefined ? token : quoted.replaceAll(/\\(.)/g, '$1')
    hasPairs ||= name !== undefined
    if (end === ';') continue
    if (hasPairs) clients.push(withoutPort(said.for) || 'unknown')
    said.for = ''
    hasPairs = false
    if (end === '') break
  }
  if (clients.length === 0) return null
  return {
    host: headers.host,
    ':authority': headers[':authority'],
    'x-forwarded-for': clients.join(', '),
    'x-forwarded-host': said.host,
    'x-forwarded-proto': said.proto
  }
}

/** An IP address without port, brackets and zone; '' where there is none: `unknown`, `_hidden`. */
function withoutPort (text) {
  const version = isIP(text)
  if (version !== 0) return version === 4 ? text : withoutZone(text)
  let address = text
  if (text.startsWith('[')) address = text.slice(1, text.indexOf(']'))
  else if (text.includes('.') && text.includes(':') && !text.includes('::')) address = text.slice(0, text.indexOf(':'))
  address = withoutZone(address)
  return isIP(address) === 0 ? '' : address
}

const STATUSES_MAX = 16

/** What many calls to the same place have in common. Made and cached by lib/outbound; RouteInfo is the same for requests. */
class CallInfo {
  #withStatus = new Map() // status -> CallInfo

  /**
   * @param {number} kind as the API counts
   * @param {string} name
   * @param {Array} attributeList flat, of checked values
   * @param {string} [origin] what the last attribute begins with: `url.full` with the URL's origin, `db.query.text` with the
   *   command; '' where calls have none. The span has the rest, as its target.
   * @param {string} [openKey] of that attribute, of fewer than 128 bytes
   * @param {boolean} [isShape] whether repeats of its calls count: those of HTTP do not, as each one's id has left with its headers
   */
  constructor (kind, name, attributeList, origin = '', openKey = 'url.full', isShape = false) {
    this.kind = kind
    this.name = name
    this.attributeList = attributeList
    this.origin = origin
    this.openKey = openKey
    this.shape = isShape ? this : null
    this.operandRule = undefined // of a Redis command: which arguments behind `origin` may be recorded
    this.encoded = null // the encoder's bytes
    this.urlOffset = 0 // in `encoded`, of the length of the attribute `openKey`
    this.series = null // of its metrics, and whose they are: see metrics/call-metrics.js
    this.seriesOwner = null
    this.part = null // what an application shows of it that leaves attributes out, and which
    this.partOwner = null
    this.whole = null // of such a part
  }

  with (attributeList) {
    return new CallInfo(this.kind, this.name, [...this.attributeList, ...attributeList], this.origin, this.openKey)
  }

  /** The same with what a response's status says, made once for each status; null when there are too many. */
  // HOT, once per outgoing call.
  withStatus (status, attributesOf) {
    const found = this.#withStatus.get(status)
    if (found !== undefined) return found
    if (this.#withStatus.size === STATUSES_MAX) return null
    const info = this.with(attributesOf(status))
    this.#withStatus.set(status, info)
    return info
  }

  get attributeCount () { return this.attributeList.length / 2 + (this.origin === '' ? 0 : 1) }

  allAttributes (target, own) {
    const open = this.origin === '' ? [] : [this.openKey, this.origin + target]
    return [...this.attributeList, ...open, ...own]
  }
}

module.exports = { routeInfo, knownMethods, requestTarget, peerInfo, forwardedPeerInfo, splitHost, CallInfo }
