'use strict'

// Which copy of @opentelemetry/api the application sees, and whether there is another one about.

const { existsSync, readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { dirname, join } = require('node:path')
const { pathToFileURL } = require('node:url')

const NAME = '@opentelemetry/api'

// Inside of a bundle our own file has another name, or none. The API is then in the bundle too, where no path leads.
const isBundled = typeof __filename !== 'string' || !__filename.endsWith('api-version.js')
const IN_BUNDLE = 'bundled' // a version that the API itself knows: it fills its slots
const MAIN_FILE = /[\\/]@opentelemetry[\\/]api[\\/](?:build[\\/]src|dist)[\\/]index\.c?js$/

module.exports = { findApi, loadEsm }

/**
 * @returns {{ path: string, version: string, copies: object[], other: string | undefined }} version '' where there is no
 *   API; copies: the exports of all that are loaded, the application's first; other: another version
 */
function findApi (sealedVersion) {
  if (isBundled) return bundledApi(sealedVersion)
  const ours = pathFrom(ownRequire())
  const apps = pathFromApp()
  const path = apps ?? ours
  if (path === undefined) return { path: '', version: '', copies: [], other: undefined }
  const version = versionOf(path)
  const others = [sealedVersion, ours === undefined || ours === path ? undefined : versionOf(ours)]
  return { path, version, copies: loadedCopies(path), other: others.find((other) => other !== undefined && other !== version) }
}

// Every copy has tracers of its own waiting for a provider; several of one version are usual in a monorepo.
function loadedCopies (first) {
  const { cache } = ownRequire()
  // Hundreds of files at every start: a search costs a tenth of the pattern.
  const paths = Object.keys(cache).filter((path) => path !== first && path.includes('opentelemetry') && MAIN_FILE.test(path))
  return [first, ...paths].map((path) => cache[path]?.exports).filter(isApi)
}

// Written so that bundlers see it, and so that those of apps without the API can leave it out. Outside of a bundle it is never
// called: loading the API costs 20 ms, which apps that do not use it need not pay.
function bundledApi (sealedVersion) {
  let copy
  try {
    copy = require('@opentelemetry/api')
  } catch {
    // An app that does not use it, and whose bundle was made without.
  }
  if (!isApi(copy)) return { path: '', version: '', copies: [], other: undefined }
  return { path: '', version: sealedVersion ?? IN_BUNDLE, copies: [copy], other: undefined }
}

function isApi (copy) {
  return typeof copy?.trace?.setGlobalTracerProvider === 'function'
}

/**
 * From 1.10 on the API has a copy for `import` beside that for `require`, with tracers of its own. Whether it is
 * loaded nobody can tell; an application that is a CommonJS module has no use for it.
 * @returns {Promise<object> | null}
 */
function loadEsm (path) {
  if (isBundled) return import('@opentelemetry/api').catch(() => undefined)
  if (mainFile() !== undefined || !path.endsWith('.cjs')) return null
  const esm = path.replace(/cjs$/, 'mjs')
  return existsSync(esm) ? import(/* webpackIgnore: true */ pathToFileURL(esm)).catch(() => undefined) : null
}

/** The CommonJS module that the process was started with, if it was one. */
function mainFile () {
  return ownRequire().main?.filename
}

// From where the application starts, else from where it is run: what its own code gets.
function pathFromApp () {
  for (const base of [mainFile(), process.argv[1], join(process.cwd(), 'index.js')]) {
    const path = typeof base === 'string' && base !== '' ? pathFrom(requireAt(base)) : undefined
    if (path !== undefined) return path
  }
}

// Not `require`: bundlers would put in the file what is looked for.
let own
function ownRequire () {
  own ??= createRequire(__filename)
  return own
}

function requireAt (file) {
  try {
    return createRequire(file)
  } catch {
    return undefined // not a path: `node -e`, a bundle
  }
}

function pathFrom (require) {
  try {
    return require?.resolve(NAME)
  } catch {
    return undefined
  }
}

// The package does not export its package.json: it is looked for above its main file.
function versionOf (path) {
  let folder = dirname(path)
  while (folder !== dirname(folder)) {
    const file = join(folder, 'package.json')
    const found = existsSync(file) ? readPackage(file) : undefined // an error with its stack costs more than to ask
    if (found?.name === NAME) return String(found.version)
    folder = dirname(folder)
  }
  return ''
}

function readPackage (path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}
