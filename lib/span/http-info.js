'use strict'

// What an HTTP server span says that is the same for many requests, kept apart from the span: of a route,
// and of the two ends of a connection. Both are made by http-conventions.js, cached by `fastify`, and carry a slot in
// which `otlp` keeps their encoded bytes.

/** Of one method on one route. `route` is '' where none matched. */
class RouteInfo {
  /**
   * @param {string} method the request's method, or '_OTHER'
   * @param {string} methodOriginal what came, when `method` is '_OTHER'; else ''
   * @param {string} route the low-cardinality template, e.g. '/users/:id'; '' when nothing matched
   */
  constructor (method, methodOriginal, route) {
    const shown = method === '_OTHER' ? 'HTTP' : method
    this.method = method
    this.methodOriginal = methodOriginal
    this.route = route
    this.name = route === '' ? shown : `${shown} ${route}`
    this.attributeList = [] // from the route's `config.trace.attributes`
    this.sampler = null // the route's own
    this.rate = null // what a sampler by rate knows of it
    this.options = null // the route's `config.trace`, resolved
    this.requestMethod = method // as it came; `fastify/routes` finds the info by it
    this.next = undefined // the info of another method on the same route
    this.encoded = null // route templates, see otlp/route-template.js
    this.isMeasured = true // whether metrics count its requests
    this.series = null // of its metrics, see metrics/route-series.js
    this.loggingServer = null // the route's Fastify instance, where it is known to give each request a logger of its own
  }
}

// What metrics tell apart of a connection, as integers: they compare in a third of the instructions that two texts take, and
// leave room below for a status, so that one comparison does for both. A proxy's headers may name any scheme, so there is an end to it.
const PROTOCOLS_MAX = 64
const STATUSES = 2 ** 24
const UNNUMBERED = -(2 ** 30) // with any status below zero: the texts are to be compared
const protocols = new Map()

function protocolNumber (scheme, version) {
  const text = `${scheme} ${version}`
  const known = protocols.get(text)
  if (known !== undefined) return known
  if (protocols.size === PROTOCOLS_MAX) return UNNUMBERED
  const number = protocols.size * STATUSES
  protocols.set(text, number)
  return number
}

/** Of a connection, under one Host and user agent. Empty strings and -1 stand for "unknown". */
class PeerInfo {
  constructor (scheme, protocolVersion, clientAddress, peerAddress, peerPort, serverAddress, serverPort, userAgent) {
    this.scheme = scheme
    this.protocolVersion = protocolVersion
    this.clientAddress = clientAddress
    this.peerAddress = peerAddress
    this.peerPort = peerPort
    this.serverAddress = serverAddress
    this.serverPort = serverPort
    this.userAgent = userAgent
    this.protocol = protocolNumber(scheme, protocolVersion) // negative: compare the two
    this.attributeCount = this.attributeList.length / 2 + (protocolVersion === '' ? 0 : 1)
    this.encoded = null // see otlp/peer-template.js, with all below
    this.template = null // of the last span
    this.joinedWith = null
    this.joined = null
    this.joins = 0
  }

  /** What does not fit the template of the route, as a flat list. */
  get attributeList () {
    const list = []
    if (this.clientAddress !== '') list.push('client.address', this.clientAddress)
    if (this.peerAddress !== '') {
      list.push('network.peer.address', this.peerAddress)
      if (this.peerPort !== -1) list.push('network.peer.port', this.peerPort)
    }
    if (this.serverAddress !== '') {
      list.push('server.address', this.serverAddress)
      if (this.serverPort !== -1) list.push('server.port', this.serverPort)
    }
    if (this.userAgent !== '') list.push('user_agent.original', this.userAgent)
    return list
  }
}

/** The attributes of a server span that its user may set another value for. */
const SERVER_KEYS = new Set([
  'http.request.method', 'http.request.method_original', 'http.route', 'http.response.status_code',
  'url.scheme', 'url.path', 'url.query', 'network.protocol.version', 'network.peer.address', 'network.peer.port',
  'client.address', 'server.address', 'server.port', 'user_agent.original', 'error.type'
])

module.exports = { RouteInfo, PeerInfo, SERVER_KEYS }
