'use strict'

// The objects that we register with @opentelemetry/api: a TracerProvider, Tracer and ContextManager over ours. The API tracer looks up
// our tracer at each `startSpan`. So an API tracer that a module fetches when it loads works for applications that start later.

const { EventEmitter } = require('node:events')
const { existsSync, readFileSync } = require('node:fs')
const { dirname, join } = require('node:path')
const { pathToFileURL } = require('node:url')
const asyncStorage = require('../context/async-storage.js')
const { SPAN_KEY, parentIn } = require('../context/trace-context.js')
const { EMPTY_CONTEXT } = require('../context/request-context.js')
const { attempt } = require('../runtime/report.js')
const { wrapSpanContext } = require('../span/child-span.js')
const { Scope } = require('../span/recording-span.js')
const { read } = require('../span/attributes.js')

// The global object of @opentelemetry/api, and the loaded copies of the API.
//
// All 1.x versions share one object. The first registration fixes its `version`. After that, other versions cannot register, and newer ones
// cannot read. light-trace fills the slots as the API does, but does not load the API, because that costs 20 ms.

const API_KEY = Symbol.for('opentelemetry.js.api.1')
const NAME = '@opentelemetry/api'
const MAIN_FILE = /[\\/]@opentelemetry[\\/]api[\\/](?:build[\\/]src|dist)[\\/]index\.c?js$/
const NO_API = { path: '', version: '', copies: [], other: undefined }
const IN_BUNDLE = 'bundled' // stands for the version of a bundled API, which fills its slots itself

// In a bundle, this file has another name or none. The API is in the bundle too, so it cannot be found by a path.
const isBundled = typeof __filename !== 'string' || !__filename.endsWith('api-facade.js')
// `createRequire` of the module class avoids loading node:module, which few applications load. In Jest, modules have another class.
/** @type {any} */
const moduleClass = isBundled ? undefined : module.constructor
const { createRequire } = /** @type {typeof import('node:module')} */ (typeof moduleClass?.createRequire === 'function' ? moduleClass : require('node:module'))
// Not `require`, because bundlers would include what is looked up with it.
const ownRequire = isBundled ? undefined : createRequire(__filename)

/** `{ version, trace?, context?, propagation?, ... }`, or undefined if nothing is registered. */
function slots () {
  return globalThis[API_KEY]
}

/** Fills the slot if it is free and the version matches. */
function fillSlot (name, value, version) {
  globalThis[API_KEY] ??= Object.defineProperty({}, 'version', { value: version, enumerable: true })
  if (slots().version === version) slots()[name] ??= value
}

/** Removes the global object if nothing is registered in it. */
function clearSlots () {
  if (Object.keys(slots() ?? {}).every((name) => name === 'version')) delete globalThis[API_KEY]
}

/**
 * Finds the application's copy of the API, and whether another version exists.
 * @returns {{ path: string, version: string, copies: object[], other: string | undefined }} version: '' if there is no API;
 *   copies: the exports of all loaded copies, the application's first; other: a second version, if one exists
 */
function findApi (sealedVersion) {
  if (isBundled) return bundledApi(sealedVersion)
  const path = resolveFromApp(NAME)
  if (path === undefined) return NO_API
  const version = versionOf(path)
  const ours = resolveFrom(__filename, NAME)
  const others = [sealedVersion, ours === undefined || ours === path ? undefined : versionOf(ours)]
  return { path, version, copies: loadedCopies(path), other: others.find((other) => other !== undefined && other !== version) }
}

// Every copy has its own tracers that wait for a provider. Several copies of one version are common in a monorepo.
function loadedCopies (first) {
  const { cache } = ownRequire
  // The cache has hundreds of paths, and in few apps one of them is the API. Searching the joined paths costs a tenth of testing each one.
  const loaded = Object.keys(cache)
  const paths = loaded.join().includes('opentelemetry') ? loaded.filter((path) => path !== first && MAIN_FILE.test(path)) : []
  return [first, ...paths].map((path) => cache[path]?.exports).filter(isApi)
}

// Bundlers see this `require` and include the API, or leave it out if the app does not have it.
function bundledApi (sealedVersion) {
  const copy = attempt(() => require('@opentelemetry/api')) // undefined if the bundle was built without the API
  return isApi(copy) ? { path: '', version: sealedVersion ?? IN_BUNDLE, copies: [copy], other: undefined } : NO_API
}

function isApi (copy) {
  return typeof copy?.trace?.setGlobalTracerProvider === 'function'
}

/**
 * Loads the ES module copy of the API. Versions from 1.10 on have one in addition to the CommonJS copy, with its own tracers.
 * Whether the application loads it cannot be detected. An application that is a CommonJS module does not need it.
 */
function loadEsm (path) {
  if (isBundled) return import('@opentelemetry/api').catch(() => undefined)
  if (ownRequire.main !== undefined || !path.endsWith('.cjs')) return null
  const esm = path.replace(/cjs$/, 'mjs')
  return existsSync(esm) ? import(/* webpackIgnore: true */ pathToFileURL(esm).href).catch(() => undefined) : null
}

/** Loads a package as the application's code would. Throws if it is not installed. */
function loadFromApp (name) {
  const path = resolveFromApp(name)
  return createRequire(path)(path)
}

/** Resolves a package as the application's code would: from the main module, the started script or the working directory, else from here. */
function resolveFromApp (name) {
  return resolveFrom(ownRequire?.main?.filename, name) ?? resolveFrom(process.argv[1], name) ??
    resolveFrom(join(process.cwd(), 'index.js'), name) ?? (typeof __filename === 'string' ? resolveFrom(__filename, name) : undefined)
}

function resolveFrom (file, name) {
  // The package may be missing, or `file` may not be a path: with `node -e`, or in a bundle.
  return file === undefined ? undefined : attempt(() => createRequire(file).resolve(name))
}

// The package does not export its package.json, so search the folders above its main file.
function versionOf (path) {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (!existsSync(file)) continue // cheaper than an error with a stack
    const found = JSON.parse(readFileSync(file, 'utf8'))
    if (found.name === NAME) return String(found.version)
  }
  return ''
}

let root = null

/** The context when nothing is active: ROOT_CONTEXT of the application's copy of the API. That copy is loaded, because it has called us. */
function rootContext () {
  root ??= findApi(undefined).copies.find(hasRoot)?.ROOT_CONTEXT ?? EMPTY_CONTEXT
  return root
}

/** Uses the ROOT_CONTEXT of the API's ES module copy. `findApi` cannot find that copy. */
function useRootOf (copy) {
  if (hasRoot(copy)) root = copy.ROOT_CONTEXT
}

function hasRoot (copy) {
  return typeof copy?.ROOT_CONTEXT?.getValue === 'function'
}

const NAME_CHARS_MAX = 1024
const SCOPES_MAX = 256 // tracers and meters are usually named after packages. Names built from user data must not fill the memory
const kBound = Symbol.for('light-trace.bound')

class ApiTracerProvider {
  #resolve
  #manager
  #tracers = new Map()

  /** @param {(context: Context) => Tracer | undefined} resolve @param {{ active, with }} manager */
  constructor (resolve, manager) {
    this.#resolve = resolve
    this.#manager = manager
  }

  getTracer (name, version, options) {
    return perScope(this.#tracers, name, version, options, (scope) => new ApiTracer(this.#resolve, this.#manager, scope))
  }

  /** For code that expects the API's own proxy in its slot. */
  getDelegate () { return this }
}

class ApiTracer {
  #resolve
  #manager
  #scope

  constructor (resolve, manager, scope) {
    this.#resolve = resolve
    this.#manager = manager
    this.#scope = scope
  }

  startSpan (name, options, context) {
    const parent = isContext(context) ? context : this.#manager.active()
    const tracer = this.#resolve(parent)
    if (tracer === undefined) return wrapSpanContext(parentIn(parent))
    try {
      return tracer.startSpan(name, options, parent, this.#scope)
    } catch (error) {
      tracer.report.failed('LT_WARN_SPAN', 'a span could not be started', error)
      return wrapSpanContext(undefined)
    }
  }

  /** Runs `fn(span)`, which ends the span. Called as (name, fn), (name, options, fn) or (name, options, context, fn). */
  startActiveSpan (name, options, context, fn) {
    if (typeof options === 'function') return this.startActiveSpan(name, undefined, undefined, options)
    if (typeof context === 'function') return this.startActiveSpan(name, options, undefined, context)
    if (typeof fn !== 'function') return undefined
    const parent = isContext(context) ? context : this.#manager.active()
    const span = this.startSpan(name, options, parent)
    return this.#manager.with(parent.setValue(SPAN_KEY, span), fn, undefined, span)
  }
}

/** The tracer or meter of a scope. It is created once. */
function perScope (known, name, version, options, make) {
  const scope = new Scope(shortened(name) ?? '', shortened(version), shortened(read(options, 'schemaUrl')))
  let found = known.get(scope.key)
  if (found === undefined) {
    found = make(scope)
    if (known.size < SCOPES_MAX) known.set(scope.key, found)
  }
  return found
}

function shortened (value) {
  return typeof value === 'string' ? value.slice(0, NAME_CHARS_MAX) : undefined
}

/** The API's ContextManager over the one AsyncLocalStorage. */
class ContextManager {
  /** The active context, else the API's own ROOT_CONTEXT, because users may compare with it. */
  active () { return asyncStorage.active() ?? rootContext() }

  with (context, fn, thisArg, ...args) {
    return asyncStorage.run(isContext(context) ? context : rootContext(), fn, thisArg, ...args)
  }

  bind (context, target) {
    try {
      if (target instanceof EventEmitter) return bindEmitter(this, context, target)
      return typeof target === 'function' ? bindFunction(this, context, target) : target
    } catch { // a frozen emitter, or a proxy that throws
      return target
    }
  }

  /** Makes `context` active for the running code and the work that it starts, or until `dispose`. API 1.10 and later call it. */
  attach (context) {
    const before = asyncStorage.active()
    asyncStorage.storage.enterWith(isContext(context) ? context : rootContext())
    let isAttached = true
    return {
      dispose () {
        if (isAttached) asyncStorage.storage.enterWith(before)
        isAttached = false
      }
    }
  }

  enable () { return this }
  disable () { return this } // running requests keep their contexts
}

function bindFunction (manager, context, fn) {
  function bound (...args) {
    return manager.with(context, fn, this, ...args)
  }
  return Object.defineProperty(bound, 'length', { value: fn.length, configurable: true })
}

// Replaces the emitter's `emit` and does not change its listeners. The first binding wins, as in the SDK.
function bindEmitter (manager, context, emitter) {
  if (Object.hasOwn(emitter, kBound) || typeof emitter.emit !== 'function') return emitter
  Object.defineProperty(emitter, kBound, { value: true })
  const emit = bindFunction(manager, context, emitter.emit)
  return Object.defineProperty(emitter, 'emit', { value: emit, writable: true, configurable: true })
}

function isContext (value) {
  return value !== null && typeof value === 'object' && typeof read(value, 'getValue') === 'function' && typeof read(value, 'setValue') === 'function'
}

/** The context manager in the API's slot. Undefined if the slot is free or holds `own`. */
function foreignManager (own) {
  const held = slots()?.context ?? undefined
  return held === own ? undefined : held
}

/** Passes each call to the context manager in the API's slot. The slot is read on each call, because one SDK may stop and another start. */
function slotContextManager (own) {
  const manager = {
    active () {
      const foreign = foreignManager(own)
      return (foreign === undefined ? asyncStorage.active() : foreign.active()) ?? EMPTY_CONTEXT
    },
    with: (context, fn, thisArg, ...args) => (foreignManager(own) ?? own).with(context, fn, thisArg, ...args),
    call: (context, fn, argument) => manager.with(context, fn, undefined, argument)
  }
  return manager
}

module.exports = { ApiTracerProvider, ContextManager, slotContextManager, foreignManager, perScope, slots, fillSlot, clearSlots, findApi, loadEsm, loadFromApp, useRootOf }
