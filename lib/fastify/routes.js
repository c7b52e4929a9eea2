'use strict'

// What spans need to know about a route, created once for each method and kept on the route's `config`, which Fastify exposes.

const { join, sep } = require('node:path')
const { fileURLToPath } = require('node:url')
const { resolveRouteOptions } = require('../config/options.js')
const { attachForRoute } = require('../features.js')
const { cleanValue } = require('../span/attributes.js')
const { attributesOfTemplate, attributesPerRequest } = require('../span/http-info.js')
const { samplerOf } = require('../sampling/sampler.js')
const { routeInfo, knownMethods } = require('../http/conventions.js')

const kRoute = Symbol('light-trace.route')
const kDeclared = Symbol('light-trace.declared')
const ATTRIBUTES_MAX = 128

const FRAMES_MAX = 50
const PLACE = /^(.+):(\d+):\d+$/
const ROOT = typeof __dirname === 'string' ? join(__dirname, '..', '..', sep) : null // an ES module bundle has no __dirname
const FASTIFY = /[/\\]node_modules[/\\](?:fastify|avvio|fastify-plugin|light-trace)[/\\]/
const PACKAGES = /[/\\]node_modules[/\\]/

let kRouteContext // the symbol under which Fastify keeps the route's own object on a request; undefined until it is found

/**
 * Fastify's own object for a route. The public `request.routeOptions` creates an object of twelve fields and asks the router, which
 * takes 650 instructions. So we search for the symbol of Fastify's own object, and recognise it by the public `config`. Without such a
 * symbol, the public object is returned. HOT, once per request.
 */
function routeContextOf (request) {
  const context = request[kRouteContext]
  if (context !== undefined) return context
  const { routeOptions } = request
  const { config } = routeOptions
  if (config !== undefined) kRouteContext = Object.getOwnPropertySymbols(request).find((symbol) => request[symbol]?.config === config)
  return request[kRouteContext] ?? routeOptions
}

/** The `slow` settings of a request's route; undefined if they are not known. */
function slowOf (request) { return routeContextOf(request).config?.[kRoute]?.slow }

/** Warns about a route with the tracing option in the wrong place, or with another plugin's. Fastify accepts any option name. */
function warnAboutRoute ({ url, trace, config }, report, app) {
  let what = ''
  if (trace !== undefined) what = '`trace` is not inside `config`'
  else if (config?.otel !== undefined && !app.hasPlugin('@fastify/otel')) what = "`config.otel` is @fastify/otel's"
  if (what !== '') report.warn('LT_WARN_OPTION_MEANING', `route ${url}: ${what}, and has no effect: use config: { trace: false }`, url)
}

/** An `onRoute` hook that notes where a route is declared, in a new config object, which Fastify copies. */
function noteDeclaration (route) {
  const place = placeAbove(noteDeclaration)
  if (place !== null) route.config = { ...route.config, [kDeclared]: place }
}

function placeAbove (fn) {
  const { stackTraceLimit } = Error
  const holder = { stack: '' }
  try {
    Error.stackTraceLimit = FRAMES_MAX
    Error.captureStackTrace(holder, fn)
    return declarationIn(String(holder.stack)) // formatted here, with a loader's source maps
  } catch {
    return null // thrown by the application's own stack formatter
  } finally {
    if (stackTraceLimit !== FRAMES_MAX) Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  }
}

/** The first place in the application's own code, or else in the package that declares the route. */
function declarationIn (stack) {
  let ofPackage = null
  for (const line of stack.split('\n')) {
    const frame = line.trim()
    if (!frame.startsWith('at ') || frame.startsWith('at async ')) continue // an async caller only awaits the declaration
    const [, where, number] = PLACE.exec(frame.endsWith(')') ? frame.slice(frame.indexOf(' (') + 2, -1) : frame.slice(3)) ?? []
    if (where === undefined || where.startsWith('node:') || where.startsWith('<') || where.startsWith('eval ')) continue
    const file = where.startsWith('file:') ? fileURLToPath(where) : where
    if (isOurs(file) || FASTIFY.test(file)) continue
    const place = { file, line: Number(number) }
    if (!PACKAGES.test(file)) return place
    ofPackage ??= place
  }
  return ofPackage
}

// Not everything below the root is ours: tests and examples are there too.
function isOurs (file) {
  return ROOT !== null && file.startsWith(ROOT) && /^(?:index\.js$|lib[/\\]|viewer[/\\])/.test(file.slice(ROOT.length))
}

class Routes {
  #tracer
  #settings
  #knownMethods
  /** @type {Report} */ #report
  #parts
  #atFirstRequest
  #noConfig = {}
  #unmatched = new Map() // method -> the info of requests without a route; Node's parser limits the methods

  /** @param {Tracer} tracer @param {Array<(hooks: object, request: object, options: object | null) => void>} atFirstRequest run at a route's first request */
  constructor (tracer, atFirstRequest) {
    const { settings, report, parts } = tracer
    this.#tracer = tracer
    this.#settings = settings
    this.#parts = parts
    this.#knownMethods = knownMethods(settings.knownMethods)
    this.#report = report
    this.#atFirstRequest = atFirstRequest
  }

  /** The info of a request's route. HOT, once per request. */
  infoOf (request) {
    const config = routeContextOf(request).config ?? this.#noConfig
    const { method } = request.raw
    let route = config[kRoute]
    while (route !== undefined && route.requestMethod !== method) route = route.next
    return route === undefined ? this.#add(request, config, request.routeOptions.url ?? '', method) : route
  }

  /** The info of a request that Fastify answered before it looked for a route. */
  unmatched (method) {
    let info = this.#unmatched.get(method)
    if (info === undefined) this.#unmatched.set(method, info = this.#make(method, '', undefined))
    return info
  }

  #make (method, url, trace) {
    const info = routeInfo(method, url, this.#knownMethods)
    this.#configure(info, trace)
    if (info.options !== null) attachForRoute(this.#tracer, info.options) // the route may have been declared before light-trace was registered
    info.slow = info.options?.slow?.afterMs === undefined ? this.#tracer.slow : info.options.slow
    return info
  }

  #add (request, config, url, method) {
    const info = this.#make(method, url, config.trace)
    this.#locate(info, config)
    const hooks = config[kRoute] === undefined ? request[kRouteContext] : undefined // Fastify's own object, which has the hooks by stage
    if (hooks !== undefined) for (const ready of this.#atFirstRequest) ready(hooks, request, info.options)
    for (const part of this.#parts.values()) part.route?.(info)
    info.requestMethod = method
    info.next = config[kRoute]
    Object.defineProperty(config, kRoute, { value: info, configurable: true, writable: true, enumerable: false })
    return info
  }

  #locate ({ attributeList }, config) {
    const place = config[kDeclared]
    if (place === undefined || attributeList.includes('code.file.path')) return
    Object.defineProperty(config, kDeclared, { value: place, enumerable: false }) // hidden, so that the handler sees the config as it was written
    attributeList.push('code.file.path', place.file, 'code.line.number', place.line)
  }

  #configure (info, trace) {
    if (trace !== undefined) this.#readOptions(info, trace)
    const { attributes, limits } = this.#settings
    const all = { ...attributesOfTemplate(attributes), ...attributesOfTemplate(info.options?.attributes ?? null) }
    for (const key of Object.keys(all).slice(0, ATTRIBUTES_MAX)) {
      const value = cleanValue(all[key], limits.attributeValueLength)
      if (value !== undefined) info.attributeList.push(key, value)
    }
  }

  #readOptions (info, trace) {
    try {
      info.options = resolveRouteOptions(trace)
    } catch (error) { // a route declared before light-trace was registered; later ones throw when they are declared
      this.#report.warn(error.code, error.message)
      return
    }
    const { attributes, sampler } = info.options
    info.isMeasured = info.options.metrics
    if (sampler !== null) info.sampler = samplerOf(sampler, this.#report)
    const perRequest = attributesPerRequest(attributes)
    if (perRequest !== null) info.options = { ...info.options, attributes: perRequest }
  }
}

module.exports = { Routes, routeContextOf, slowOf, noteDeclaration, warnAboutRoute }
