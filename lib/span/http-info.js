'use strict'

// What is the same in many HTTP server spans, of a route and of a connection. Both have a slot for their encoded bytes.

const NEVER = Object.freeze({ afterMs: Infinity })

/** One method on one route. */
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
    this.keepRate = null // what `keep` knows of it
    this.options = null // the route's `config.trace`, resolved
    this.slow = NEVER // from how many milliseconds on a request is slow: the route's own, or Tracer.slow, which may change
    this.requestMethod = method // as it came; lib/fastify/routes.js finds the info by it
    this.next = undefined // the info of another method on the same route
    this.encoded = null // route templates, see lib/otlp/templates.js
    this.isMeasured = true // whether metrics count its requests
    this.explainer = null // what sees its spans start, and may take those that
    this.explainedAfterMs = Infinity // have taken so long, to say of the slow ones why
    this.series = null // of its metrics, see Entry in lib/features/metrics/server-metrics.js
    this.loggingServer = null // the route's Fastify instance, where it is known to give each request a logger of its own
  }

  /** What its spans on a connection say of the request, as a flat list. `path` is null where each request has another. */
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

/** What the callers over all connections from one address to one host share. Empty strings and -1 stand for "unknown". */
class Place {
  constructor (address, hasPort, host, protocol, scheme, omit, clientAddress, peerAddress, serverAddress, serverPort, before) {
    this.address = address // as it came, like host and protocol
    this.hasPort = hasPort
    this.host = host
    this.protocol = protocol
    this.scheme = scheme
    this.omit = omit // what its application leaves out, which is unknown here, too
    this.clientAddress = clientAddress // of callers that no proxy names
    this.peerAddress = peerAddress
    this.serverAddress = serverAddress
    this.serverPort = serverPort
    this.before = before // another place of the same host
    this.isKnown = false // whether a span had it before, so that it is worth keeping as bytes
    this.encoded = null
  }
}

/** A caller on a connection, under one Host and user agent. */
class PeerInfo {
  // HOT, once for each caller of a connection.
  constructor (place, peerPort, version, protocolVersion, ip, clientAddress, agent, userAgent) {
    this.place = place
    this.peerPort = peerPort
    this.version = version // as ten times the major one and the minor one
    this.protocolVersion = protocolVersion
    this.ip = ip // as it came, like the agent
    this.clientAddress = clientAddress
    this.agent = agent
    this.userAgent = userAgent
    this.isKnown = false
    this.encoded = null // all of its bytes
  }

  get scheme () { return this.place.scheme }

  /** What the template of the route does not have, as a flat list. */
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

/** The attributes of a server span that its user may set another value for. */
const SERVER_KEYS = new Set([
  'http.request.method', 'http.request.method_original', 'http.route', 'http.response.status_code',
  'url.scheme', 'url.path', 'url.query', 'network.protocol.version', 'network.peer.address', 'network.peer.port',
  'client.address', 'server.address', 'server.port', 'user_agent.original', 'error.type'
])

// The user's attributes are an object, a function or null. An object is part of the routes' templates, unless it sets one of these anew.

/** The object, or null where attributes are set on each request. */
function attributesOfTemplate (attributes) {
  const isFixed = attributes !== null && typeof attributes !== 'function' && !Object.keys(attributes).some((key) => SERVER_KEYS.has(key))
  return isFixed ? attributes : null
}

/** What returns the attributes of a request; null where its route's template has them, or there are none. */
function attributesPerRequest (attributes) {
  if (attributes === null || typeof attributes === 'function') return attributes
  return attributesOfTemplate(attributes) === null ? () => attributes : null
}

module.exports = { RouteInfo, Place, PeerInfo, SERVER_KEYS, attributesOfTemplate, attributesPerRequest }
