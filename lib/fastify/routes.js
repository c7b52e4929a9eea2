'use strict'

// From a request to the info of its route, in one property read.
//
// The public way, `request.routeOptions`, builds an object of twelve fields at each access. Fastify keeps
// the route's own object on the request under a symbol; we look for it once, on the first request, make
// sure that it is what we think, and else go the public way.

const { resolveRouteOptions } = require('../config/route-options')
const { cleanValue } = require('../span/attributes')
const { SERVER_KEYS } = require('../span/http-info')
const { samplerOf } = require('../span/sampler')
const { routeInfo, knownMethods } = require('../span/http-conventions')

const kRoute = Symbol('light-trace.route')
const ATTRIBUTES_MAX = 128

class Routes {
  #knownMethods
  #report
  #limits
  #ready = false
  #contextSymbol = undefined
  #noRoute = {}
  #unrouted = new Map()

  constructor (settings, report) {
    this.#knownMethods = knownMethods(settings.knownMethods)
    this.#limits = settings.limits
    this.#report = report
  }

  /** HOT, once per request. @returns {RouteInfo} */
  infoOf (request) {
    if (!this.#ready) this.#find(request)
    const owner = this.#contextSymbol === undefined ? (request.routeOptions.config ?? this.#noRoute) : request[this.#contextSymbol]
    const { method } = request.raw
    let route = owner[kRoute]
    while (route !== undefined && route.requestMethod !== method) route = route.next
    return route === undefined ? this.#add(owner, request, method) : route
  }

  /** Whether the route has onResponse hooks, which run when the response has finished. */
  hasOnResponse (request) {
    if (!this.#ready) this.#find(request)
    return this.#contextSymbol === undefined || request[this.#contextSymbol].onResponse !== null
  }

  /** Of requests that never had a route. Node's parser bounds the methods. */
  unrouted (method) {
    let info = this.#unrouted.get(method)
    if (info === undefined) this.#unrouted.set(method, info = routeInfo(method, '', this.#knownMethods))
    return info
  }

  #find (request) {
    this.#ready = true
    this.#contextSymbol = contextSymbol(request)
  }

  #add (owner, request, method) {
    const { url, config } = request.routeOptions
    const info = routeInfo(method, typeof url === 'string' ? url : '', this.#knownMethods)
    this.#configure(info, config?.trace)
    info.requestMethod = method
    info.next = owner[kRoute]
    Object.defineProperty(owner, kRoute, { value: info, configurable: true, writable: true, enumerable: false })
    return info
  }

  #configure (info, trace) {
    if (trace === undefined) return
    try {
      info.options = resolveRouteOptions(trace)
    } catch (error) {
      // A route that was declared before us; those after us have thrown when they were declared.
      this.#report.once(error.code, error.message)
      return
    }
    const { attributes, sampler } = info.options
    info.isMeasured = info.options.metrics
    if (sampler !== null) info.sampler = samplerOf(sampler, this.#report)
    if (attributes === null || typeof attributes === 'function') return // asked per request
    const keys = Object.keys(attributes).slice(0, ATTRIBUTES_MAX)
    if (keys.some((key) => SERVER_KEYS.has(key))) {
      // In place of what the request itself says: set like a user's own.
      info.options = { ...info.options, attributes: () => attributes }
      return
    }
    for (const key of keys) {
      const value = cleanValue(attributes[key], this.#limits.attributeValueLength)
      if (value !== undefined) info.attributeList.push(key, value)
    }
  }
}

/** The symbol under which this Fastify keeps a route's own object on its requests, or undefined. */
function contextSymbol (request) {
  const { config, handler } = request.routeOptions
  return Object.getOwnPropertySymbols(request).find((symbol) => {
    const value = request[symbol]
    return value !== null && typeof value === 'object' && handler !== undefined &&
      value.handler === handler && value.config === config
  })
}

module.exports = { Routes, contextSymbol }
