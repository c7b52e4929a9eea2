'use strict'

// Derives the data of the HTTP conventions from Fastify's request: the infos of its route and its connection.
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

// The characters of a host or an address. Brackets and colons are for IPv6.
const HOST = /^[\w.\-:[\]%]+$/
const SCHEMES = ['http', 'https', 'ws', 'wss'] // behind a proxy, a client may send any scheme, and metrics have a series for each
const PORT = /^\d{1,5}$/ // Number() alone would accept '0x50' and '1e2'
const DEFAULT_PORTS = { __proto__: null, http: 80, https: 443 }

// A pair of the Forwarded header: token=token or token="quoted string". A ; separates the pairs of one proxy, and a , separates proxies.
// Clients can send any text, so each loop is followed by a character that the loop cannot match. This rules out backtracking.
const PAIR = /[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^",; \t]*))[ \t]*)?([;,]|$)/y

const kPeer = Symbol('light-trace.peer')

// The most recent places by host. A service has one host, or one per tenant, and few proxies in front of it.
const HOSTS_MAX = 256
const PLACES_MAX = 8 // per host
const lastPlaces = new Map() // host -> the most recent place, which links to the others

/** The RouteInfo of a method on a route. Unknown methods become '_OTHER'. */
function routeInfo (method, route, knownMethods) {
  return knownMethods.has(method)
    ? new RouteInfo(method, '', route)
    : new RouteInfo('_OTHER', cut(method, METHOD_LENGTH_MAX), route)
}

/**
 * @param {string[] | null} override the value of OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS
 * @returns the same set for all applications without an override. Cached CallInfos are valid for one set only, so they can share them
 */
function knownMethods (override) {
  return override === null ? KNOWN_METHODS : new Set(override)
}

/** The request target as the client sent it, before `rewriteUrl`. Without scheme and host if it is in absolute form. HOT */
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

/** The PeerInfo of a request. HOT @param {import('../features/omit').Omission | null} [omit] */
function peerInfo (raw, response, headers, valueLengthMax, omit = null) {
  return peerOf(raw, response, headers, valueLengthMax, undefined, headers.host ?? headers[':authority'], undefined, omit)
}

/** The PeerInfo of a request if Fastify's trustProxy is on. Client, host and scheme come from the forwarded headers. */
function forwardedPeerInfo (request, response, valueLengthMax, omit = null) {
  const { raw } = request
  const { headers } = raw
  const source = headers.forwarded !== undefined && headers['x-forwarded-for'] === undefined ? byForwarded(request) : request
  const ip = isShown('client.address', omit) ? attempt(() => source.ip) : undefined
  const isOwnHost = source === request && headers['x-forwarded-host'] === undefined
  const host = (isOwnHost ? undefined : attempt(() => source.host)) ?? headers.host ?? headers[':authority']
  return peerOf(raw, response, headers, valueLengthMax, ip, host, attempt(() => source.protocol), omit)
}

/** The PeerInfo of the connection's previous request if nothing has changed, which is usual; else a new one. HOT */
function peerOf (raw, { shouldKeepAlive }, headers, valueLengthMax, ip, host, protocol, omit) {
  const { socket } = raw
  const before = socket?.[kPeer]
  const agent = headers['user-agent']
  const version = raw.httpVersionMajor * 10 + raw.httpVersionMinor // `httpVersion` is a string that Node creates for each request
  const isThere = before !== undefined && before.place.host === host && before.place.protocol === protocol && before.place.omit === omit
  if (isThere && before.ip === ip && before.agent === agent && before.version === version) return before
  const peer = isThere
    ? readPeer(raw, before.place, before.peerPort, version, ip, agent, valueLengthMax)
    : readConnection(raw, host, protocol, version, ip, agent, valueLengthMax, omit)
  // Nothing is stored on a socket that closes after this response, because adding a field to a socket takes V8 2,000 instructions.
  if (socket && shouldKeepAlive !== false) socket[kPeer] = peer
  return peer
}

/** HOT, once for each change of client on a connection. Behind a proxy, with most requests. */
function readPeer (raw, place, peerPort, version, ip, agent, valueLengthMax) {
  const clientAddress = typeof ip === 'string' ? withoutPort(ip) || place.clientAddress : place.clientAddress
  const userAgent = typeof agent === 'string' && isShown('user_agent.original', place.omit) ? cut(agent, Math.min(valueLengthMax, USER_AGENT_LENGTH_MAX)) : ''
  return new PeerInfo(place, peerPort, version, protocolVersion(raw, version), ip, clientAddress, agent, userAgent)
}

/** HOT, once for each connection, and for each change of host on it. */
function readConnection (raw, host, protocol, version, ip, agent, valueLengthMax, omit) {
  const { socket } = raw
  const peerPort = socket?.remotePort
  const hasPort = Number.isInteger(peerPort) && isShown('network.peer.port', omit)
  const place = placeFor(socket?.remoteAddress, hasPort, host, protocol, schemeOf(protocol, socket), omit)
  return readPeer(raw, place, hasPort ? peerPort : -1, version, ip, agent, valueLengthMax)
}

/** One of the recent places, or a new one. If the clients are browsers, each connection has a new address, but a known host. */
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
  // Our own string and not the caller's, because it is compared with each template's scheme.
  return SCHEMES.find((scheme) => scheme === given) ?? (socket?.encrypted === true ? 'https' : 'http')
}

/** '2.0' becomes '2'. '1.0' and '1.1' do not change. */
function protocolVersion (raw, version) {
  if (version === 11) return '1.1' // the same string for all connections, because it is compared on each request
  const { httpVersion } = raw
  if (httpVersion === '2.0') return '2'
  return typeof httpVersion === 'string' ? httpVersion : ''
}

/** The address without an IPv6 zone. '' if the value is not an address. */
function addressOf (value) {
  return typeof value === 'string' && value.length <= ADDRESS_LENGTH_MAX && HOST.test(value) ? withoutZone(value) : ''
}

function withoutZone (address) {
  const mark = address.indexOf('%')
  return mark === -1 ? address : address.slice(0, mark)
}

/** The host and port of a Host header. Invalid ones are dropped rather than passed on. */
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

/** The request with Forwarded translated to X-Forwarded-* headers, so that Fastify's getters apply their rules of which proxies to trust. */
function byForwarded (request) {
  const { headers, socket } = request.raw
  const translated = asForwardedHeaders(headers.forwarded, headers)
  if (translated === null) return request
  return Object.create(Object.getPrototypeOf(request), { raw: { value: { headers: translated, socket, connection: socket } } })
}

/** Translates RFC 7239's Forwarded to X-Forwarded-* headers. Null if it is invalid. https://www.rfc-editor.org/rfc/rfc7239 */
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

/** The IP address without port, brackets and zone. '' if it is not an address: `unknown`, `_hidden`. */
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

/** What all calls to the same place share. lib/outbound creates and caches it. RouteInfo is the counterpart for requests. */
class CallInfo {
  #withStatus = new Map() // status -> CallInfo

  /**
   * @param {number} kind in the API's numbers
   * @param {string} name
   * @param {Array} attributeList a flat list of checked values
   * @param {string} [origin] the beginning of the open attribute: the URL's origin for `url.full`, the command for `db.query.text`.
   *   '' if the calls have no open attribute. The span holds the rest, as its target.
   * @param {string} [openKey] the key of the open attribute, shorter than 128 bytes
   * @param {boolean} [isShape] whether repetitions of its calls are counted. Not for HTTP, because each call has sent its span id in its headers
   */
  constructor (kind, name, attributeList, origin = '', openKey = 'url.full', isShape = false) {
    this.kind = kind
    this.name = name
    this.attributeList = attributeList
    this.origin = origin
    this.openKey = openKey
    this.shape = isShape ? this : null
    this.operandRule = undefined // for a Redis command: which arguments after `origin` may be recorded
    this.encoded = null // the encoder's bytes
    this.urlOffset = 0 // the offset in `encoded` of the length of the attribute `openKey`
    this.series = null // its metric series and their owner, see metrics/call-metrics.js
    this.seriesOwner = null
    this.part = null // the CallInfo without the omitted attributes, and the Omission that created it
    this.partOwner = null
    this.whole = null // for a `part`: the CallInfo with all attributes
  }

  with (attributeList) {
    return new CallInfo(this.kind, this.name, [...this.attributeList, ...attributeList], this.origin, this.openKey)
  }

  /** The CallInfo with the attributes of a response status, created once per status. Null if there are too many statuses. */
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
