'use strict'

// The global object of @opentelemetry/api and the copies of the API that are loaded.
//
// All versions 1.x share one object. The first to register seals its `version`: from then on other versions can neither register
// nor, when newer, read. light-trace does not load the API, which costs 20 ms: it fills the slots as the API does.

const { existsSync, readFileSync } = require('node:fs')
const { dirname, join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { EMPTY_CONTEXT } = require('../context/request-context')

const API_KEY = Symbol.for('opentelemetry.js.api.1')
const NAME = '@opentelemetry/api'
const MAIN_FILE = /[\\/]@opentelemetry[\\/]api[\\/](?:build[\\/]src|dist)[\\/]index\.c?js$/
const NO_API = { path: '', version: '', copies: [], other: undefined }
const IN_BUNDLE = 'bundled' // a version that the API itself knows: it fills its slots

// In a bundle our file has another name, or none, and no path leads to the API, which is in the bundle too.
const isBundled = typeof __filename !== 'string' || !__filename.endsWith('api-slots.js')
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
  // Hundreds of files at every start: a search costs a tenth of the pattern.
  const paths = Object.keys(cache).filter((path) => path !== first && path.includes('opentelemetry') && MAIN_FILE.test(path))
  return [first, ...paths].map((path) => cache[path]?.exports).filter(isApi)
}

// In a bundle: bundlers see the `require`, and can leave it out for apps without the API.
function bundledApi (sealedVersion) {
  let copy
  try {
    copy = require('@opentelemetry/api')
  } catch {} // an app that does not use it, and whose bundle was made without
  return isApi(copy) ? { path: '', version: sealedVersion ?? IN_BUNDLE, copies: [copy], other: undefined } : NO_API
}

function isApi (copy) {
  return typeof copy?.trace?.setGlobalTracerProvider === 'function'
}

/**
 * Loads the copy of the API for `import`, which 1.10 and later have beside that for `require`, with tracers of its own.
 * Whether it is loaded cannot be seen; an application that is a CommonJS module has no use for it.
 * @returns {Promise<object> | null}
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
  if (file === undefined) return undefined
  try {
    return createRequire(file).resolve(name)
  } catch {
    return undefined // there is none, or `file` is not a path: `node -e`, a bundle
  }
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

module.exports = { slots, fillSlot, clearSlots, findApi, loadEsm, loadFromApp, rootContext, useRootOf }
