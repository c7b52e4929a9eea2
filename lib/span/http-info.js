'use strict'

// The parts that many HTTP server spans share: one per route and one per connection. Each has a slot for its encoded bytes.

const NEVER = Object.freeze({ afterMs: Infinity })

/** One method on one route. */
class RouteInfo {
  /**
   * @param {string} method the request's method, or '_OTHER'
   * @param {string} methodOriginal the method as sent, if `method` is '_OTHER'; else ''
   * @param {string} route the low-cardinality template, e.g. '/users/:id'; '' if no route matched
   */
  constructor (method, methodOriginal, route) {
    const shown = method === '_OTHER' ? 'HTTP' : method
    this.method = method
    this.methodOriginal = methodOriginal
    this.route = route
    this.name = route === '' ? shown : `${shown} ${route}`
    this.attributeList = [] // from the route's `config.trace.attributes`
    this.sampler = null // the route's own sampler
    this.rate = null // the state that a rate sampler keeps for this route
    this.keepRate = null // the state that `keep` keeps for this route
    this.options = null // the route's `config.trace`, resolved
    this.slow = NEVER // after how many milliseconds a request is slow: the route's own setting, or Tracer.slow, which may change
    this.requestMethod = method // as sent; lib/fastify/routes.js finds the info by it
    this.next = undefined // the info of another method on the same route
    this.encoded = null // the route's templates, see lib/otlp/templates.js
    this.isMeasured = true // whether metrics count its requests
    this.explainer = null // sees its spans start, and may take slow ones to explain why they were slow
    this.explainedAfterMs = Infinity // from this duration on, the explainer may take a span
    this.series = null // its metric series, see Entry in lib/features/metrics/server-metrics.js
    this.loggingServer = null // the route's Fastify instance, if it is known to give each request its own logger
  }

  /** The request attributes of its spans on a connection, as a flat list. `path` is null if it differs between requests. */
  requestAttributes ({ scheme, protocolVersion }, path) {
    const list = ['http.request.method', this.method]
    if (this.methodOriginal !== '') list.push('http.request.method_original', this.methodOriginal)
    if (this.route !== '') list.push('http.route', this.route)
    if (path !== null) list.push('url.path', path)
    list.push('url.scheme', scheme)
    if (protocolVersion !== '') list.push('network.protocol.version', protocolVersion)
    return list
  }
}

/** What all connections from one address to one host share. Empty strings and -1 mean "unknown". */
class Place {
  constructor (address, hasPort, host, protocol, scheme, omit, clientAddress, peerAddress, serverAddress, serverPort, before) {
    this.address = address // as received, like host and protocol
    this.hasPort = hasPort
    this.host = host
    this.protocol = protocol
    this.scheme = scheme
    this.omit = omit // the attributes that the application omits; they are "unknown" here too
    this.clientAddress = clientAddress // for clients that no proxy header names
    this.peerAddress = peerAddress
    this.serverAddress = serverAddress
    this.serverPort = serverPort
    this.before = before // another place of the same host
    this.isKnown = false // whether a span has used it before, so that its bytes are worth keeping
    this.encoded = null
  }
}

/** A client on a connection, with one Host and one user agent. */
class PeerInfo {
  // HOT, once for each client of a connection.
  constructor (place, peerPort, version, protocolVersion, ip, clientAddress, agent, userAgent) {
    this.place = place
    this.peerPort = peerPort
    this.version = version // 10 * major + minor
    this.protocolVersion = protocolVersion
    this.ip = ip // as received, like the agent
    this.clientAddress = clientAddress
    this.agent = agent
    this.userAgent = userAgent
    this.isKnown = false
    this.encoded = null // the bytes of all its attributes
  }

  get scheme () { return this.place.scheme }

  /** The attributes that are not in the route's template, as a flat list. */
  get attributeList () {
    const { peerAddress, serverAddress, serverPort } = this.place
    const list = []
    if (this.clientAddress !== '') list.push('client.address', this.clientAddress)
    if (peerAddress !== '') {
      list.push('network.peer.address', peerAddress)
      if (this.peerPort !== -1) list.push('network.peer.port', this.peerPort)
    }
    if (serverAddress !== '') {
      list.push('server.address', serverAddress)
      if (serverPort !== -1) list.push('server.port', serverPort)
    }
    if (this.userAgent !== '') list.push('user_agent.original', this.userAgent)
    return list
  }
}

/** The server span's own attributes whose values the user may override. */
const SERVER_KEYS = new Set([
  'http.request.method', 'http.request.method_original', 'http.route', 'http.response.status_code',
  'url.scheme', 'url.path', 'url.query', 'network.protocol.version', 'network.peer.address', 'network.peer.port',
  'client.address', 'server.address', 'server.port', 'user_agent.original', 'error.type'
])

// The user's attributes are an object, a function or null. An object is part of the route templates unless it overrides one of SERVER_KEYS.

/** The object if it belongs in the templates; null if attributes are set on each request. */
function attributesOfTemplate (attributes) {
  const isFixed = attributes !== null && typeof attributes !== 'function' && !Object.keys(attributes).some((key) => SERVER_KEYS.has(key))
  return isFixed ? attributes : null
}

/** The function that returns a request's attributes. Null if they are in the route's template, or if none are configured. */
function attributesPerRequest (attributes) {
  if (attributes === null || typeof attributes === 'function') return attributes
  return attributesOfTemplate(attributes) === null ? () => attributes : null
}

module.exports = { RouteInfo, Place, PeerInfo, SERVER_KEYS, attributesOfTemplate, attributesPerRequest }
