'use strict'

// What stands in the slots of @opentelemetry/api: its TracerProvider, Tracer and ContextManager over ours. Which of our tracers
// makes a span is asked at each `startSpan`: an API tracer that is fetched when a module loads works for later applications.

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

// The global object of @opentelemetry/api and the copies of the API that are loaded.
//
// All versions 1.x share one object. The first to register seals its `version`: from then on other versions can neither register
// nor, when newer, read. light-trace does not load the API, which costs 20 ms: it fills the slots as the API does.

const API_KEY = Symbol.for('opentelemetry.js.api.1')
const NAME = '@opentelemetry/api'
const MAIN_FILE = /[\\/]@opentelemetry[\\/]api[\\/](?:build[\\/]src|dist)[\\/]index\.c?js$/
const NO_API = { path: '', version: '', copies: [], other: undefined }
const IN_BUNDLE = 'bundled' // a version that the API itself knows: it fills its slots

// In a bundle our file has another name, or none, and no path leads to the API, which is in the bundle too.
const isBundled = typeof __filename !== 'string' || !__filename.endsWith('api-facade.js')
// On the class of modules, which is there: node:module is a file of Node's that nobody else loads. In Jest, modules have another class.
/** @type {any} */
const moduleClass = isBundled ? undefined : module.constructor
const { createRequire } = /** @type {typeof import('node:module')} */ (typeof moduleClass?.createRequire === 'function' ? moduleClass : require('node:module'))
// Not `require`: bundlers would put in the file what is looked for.
const ownRequire = isBundled ? undefined : createRequire(__filename)

/** `{ version, trace?, context?, propagation?, ... }`, or undefined where nobody has registered anything. */
function slots () {
  return globalThis[API_KEY]
}

/** Fills the slot if it is free and the version is right. */
function fillSlot (name, value, version) {
  globalThis[API_KEY] ??= Object.defineProperty({}, 'version', { value: version, enumerable: true })
  if (slots().version === version) slots()[name] ??= value
}

/** Removes the object, if nothing is registered in it. */
function clearSlots () {
  if (Object.keys(slots() ?? {}).every((name) => name === 'version')) delete globalThis[API_KEY]
}

/**
 * Finds the copy of the API that the application sees, and whether there is another version.
 * @returns {{ path: string, version: string, copies: object[], other: string | undefined }} version '' where there is no
 *   API; copies: the exports of all that are loaded, the application's first; other: another version
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

// Every copy has tracers of its own waiting for a provider; several of one version are usual in a monorepo.
function loadedCopies (first) {
  const { cache } = ownRequire
  // Hundreds of files at every start, and few apps have loaded a copy by then: one search in all paths costs a tenth of one in each.
  const loaded = Object.keys(cache)
  const paths = loaded.join().includes('opentelemetry') ? loaded.filter((path) => path !== first && MAIN_FILE.test(path)) : []
  return [first, ...paths].map((path) => cache[path]?.exports).filter(isApi)
}

// In a bundle: bundlers see the `require`, and can leave it out for apps without the API.
function bundledApi (sealedVersion) {
  const copy = attempt(() => require('@opentelemetry/api')) // undefined: an app that does not use it, and whose bundle was made without
  return isApi(copy) ? { path: '', version: sealedVersion ?? IN_BUNDLE, copies: [copy], other: undefined } : NO_API
}

function isApi (copy) {
  return typeof copy?.trace?.setGlobalTracerProvider === 'function'
}

/**
 * Loads the copy of the API for `import`, which 1.10 and later have beside that for `require`, with tracers of its own.
 * Whether it is loaded cannot be seen; an application that is a CommonJS module has no use for it.
 */
function loadEsm (path) {
  if (isBundled) return import('@opentelemetry/api').catch(() => undefined)
  if (ownRequire.main !== undefined || !path.endsWith('.cjs')) return null
  const esm = path.replace(/cjs$/, 'mjs')
  return existsSync(esm) ? import(/* webpackIgnore: true */ pathToFileURL(esm).href).catch(() => undefined) : null
}

/** Loads such a package; throws where there is none. */
function loadFromApp (name) {
  const path = resolveFromApp(name)
  return createRequire(path)(path)
}

/** The main file of the package that the application's code gets: from where it starts, where it is run, else from here. */
function resolveFromApp (name) {
  return resolveFrom(ownRequire?.main?.filename, name) ?? resolveFrom(process.argv[1], name) ??
    resolveFrom(join(process.cwd(), 'index.js'), name) ?? (typeof __filename === 'string' ? resolveFrom(__filename, name) : undefined)
}

function resolveFrom (file, name) {
  // There may be none, or `file` is not a path: `node -e`, a bundle.
  return file === undefined ? undefined : attempt(() => createRequire(file).resolve(name))
}

// The package does not export its package.json: it is looked for above its main file.
function versionOf (path) {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (!existsSync(file)) continue // an error with its stack costs more than to ask
    const found = JSON.parse(readFileSync(file, 'utf8'))
    if (found.name === NAME) return String(found.version)
  }
  return ''
}

let root = null

/** What is active where nothing is: the ROOT_CONTEXT of the application's copy of the API, which has called and so is loaded. */
function rootContext () {
  root ??= findApi(undefined).copies.find(hasRoot)?.ROOT_CONTEXT ?? EMPTY_CONTEXT
  return root
}

/** An ES module's own copy of the API, which nothing but an import finds. */
function useRootOf (copy) {
  if (hasRoot(copy)) root = copy.ROOT_CONTEXT
}

function hasRoot (copy) {
  return typeof copy?.ROOT_CONTEXT?.getValue === 'function'
}

const NAME_CHARS_MAX = 1024
const SCOPES_MAX = 256 // tracers and meters are named after packages; names made of user data must not pile up
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

/** The tracer or meter of a scope, which is made once. */
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
  /** The active context, else the API's own ROOT_CONTEXT: users may compare with it. */
  active () { return asyncStorage.active() ?? rootContext() }

  with (context, fn, thisArg, ...args) {
    return asyncStorage.run(isContext(context) ? context : rootContext(), fn, thisArg, ...args)
  }

  bind (context, target) {
    try {
      if (target instanceof EventEmitter) return bindEmitter(this, context, target)
      return typeof target === 'function' ? bindFunction(this, context, target) : target
    } catch { // a frozen emitter, a proxy that throws
      return target
    }
  }

  /** Makes `context` active until `dispose`, or the end of what runs now and what that starts. Called by API 1.10 and later. */
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
  disable () { return this } // requests that are under way keep their contexts
}

function bindFunction (manager, context, fn) {
  function bound (...args) {
    return manager.with(context, fn, this, ...args)
  }
  return Object.defineProperty(bound, 'length', { value: fn.length, configurable: true })
}

// One own `emit` on the emitter: listeners stay as they are. The first binding holds, as in the SDK.
function bindEmitter (manager, context, emitter) {
  if (Object.hasOwn(emitter, kBound) || typeof emitter.emit !== 'function') return emitter
  Object.defineProperty(emitter, kBound, { value: true })
  const emit = bindFunction(manager, context, emitter.emit)
  return Object.defineProperty(emitter, 'emit', { value: emit, writable: true, configurable: true })
}

function isContext (value) {
  return value !== null && typeof value === 'object' && typeof read(value, 'getValue') === 'function' && typeof read(value, 'setValue') === 'function'
}

/** The context manager in the API's slot; undefined if the slot is free or holds `own`. */
function foreignManager (own) {
  const held = slots()?.context ?? undefined
  return held === own ? undefined : held
}

/** Passes each call on to the context manager in the API's slot, asked each time: an SDK may be stopped and another one started. */
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
