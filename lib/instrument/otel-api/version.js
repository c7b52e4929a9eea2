'use strict'

// Which copy of @opentelemetry/api the application sees, and whether there is another one about.

const { readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { dirname, join } = require('node:path')

const NAME = '@opentelemetry/api'

module.exports = { findApi }

/**
 * @returns {{ version: string, exports: object | undefined, other: string | undefined }} version '' where
 *   there is no API; exports where it is loaded already; other: the version of another copy
 */
function findApi (sealedVersion) {
  const ours = pathFrom(require)
  const apps = pathFromApp()
  const path = apps ?? ours
  if (path === undefined) return { version: '', exports: undefined, other: undefined }
  const version = versionOf(path)
  const others = [sealedVersion, ours === undefined || ours === path ? undefined : versionOf(ours)]
  return { version, exports: require.cache[path]?.exports, other: others.find((other) => other !== undefined && other !== version) }
}

// From where the application starts, else from where it is run: what its own code gets.
function pathFromApp () {
  for (const base of [require.main?.filename, process.argv[1], join(process.cwd(), 'index.js')]) {
    const path = typeof base === 'string' && base !== '' ? pathFrom(requireAt(base)) : undefined
    if (path !== undefined) return path
  }
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
    const found = readPackage(join(folder, 'package.json'))
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
