'use strict'

// What spans say of a request's route, made once for each method. It hangs on the route's `config`, which Fastify hands out.

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
const ROOT = typeof __dirname === 'string' ? join(__dirname, '..', '..', sep) : null // a bundle that is an ES module has none
const FASTIFY = /[/\\]node_modules[/\\](?:fastify|avvio|fastify-plugin|light-trace)[/\\]/
const PACKAGES = /[/\\]node_modules[/\\]/

let kRouteContext // the symbol under which Fastify keeps the route's own object on each request; undefined until it is found

/**
 * The object that Fastify makes for a route, of which its `config` is public. The public `request.routeOptions` makes another
 * object of twelve fields and asks the router, which takes 650 instructions: so the symbol is looked for, and found by the
 * public `config`. Where there is none of that kind the public object is returned. HOT, once per request.
 */
function routeContextOf (request) {
  const context = request[kRouteContext]
  if (context !== undefined) return context
  const { routeOptions } = request
  const { config } = routeOptions
  if (config !== undefined) kRouteContext = Object.getOwnPropertySymbols(request).find((symbol) => request[symbol]?.config === config)
  return request[kRouteContext] ?? routeOptions
}

/** What is slow on the route of a request; undefined where that is not known. */
function slowOf (request) { return routeContextOf(request).config?.[kRoute]?.slow }

/** Says of a route that has the switch of tracing in the wrong place, or another plugin's. Fastify takes any name. */
function warnAboutRoute ({ url, trace, config }, report, app) {
  let what = ''
  if (trace !== undefined) what = '`trace` stands beside `config`'
  else if (config?.otel !== undefined && !app.hasPlugin('@fastify/otel')) what = "`config.otel` is @fastify/otel's"
  if (what !== '') report.warn('LT_WARN_OPTION_MEANING', `route ${url}: ${what}, and has no effect: use config: { trace: false }`, url)
}

/** Notes where a route is declared, once per route, by an `onRoute` hook: in a config of the route's own, which Fastify copies. */
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
    return declarationIn(String(holder.stack)) // made here: a loader's source maps are applied to it
  } catch {
    return null // what formats stacks is the application's
  } finally {
    if (stackTraceLimit !== FRAMES_MAX) Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  }
}

/** The application's own code, where it is in the stack, else that of the package which declares the route. */
function declarationIn (stack) {
  let ofPackage = null
  for (const line of stack.split('\n')) {
    const frame = line.trim()
    if (!frame.startsWith('at ') || frame.startsWith('at async ')) continue // what waits for it has not declared it
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

// Not all below the root: tests and examples are there too.
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
  #unmatched = new Map() // the infos of requests without a route, by method, which Node's parser bounds

  /** @param {Tracer} tracer @param {Array<(hooks: object, request: object, options: object | null) => void>} atFirstRequest what readies a route */
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

  /** The info of a request that Fastify has answered before it looked for a route. */
  unmatched (method) {
    let info = this.#unmatched.get(method)
    if (info === undefined) this.#unmatched.set(method, info = this.#make(method, '', undefined))
    return info
  }

  #make (method, url, trace) {
    const info = routeInfo(method, url, this.#knownMethods)
    this.#configure(info, trace)
    if (info.options !== null) attachForRoute(this.#tracer, info.options) // it may have been declared before us
    info.slow = info.options?.slow?.afterMs === undefined ? this.#tracer.slow : info.options.slow
    return info
  }

  #add (request, config, url, method) {
    const info = this.#make(method, url, config.trace)
    this.#locate(info, config)
    const hooks = config[kRoute] === undefined ? request[kRouteContext] : undefined // it has them by stage
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
    Object.defineProperty(config, kDeclared, { value: place, enumerable: false }) // the handler's config is as it was written
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
    } catch (error) { // a route that was declared before us; those after us have thrown when they were declared
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
