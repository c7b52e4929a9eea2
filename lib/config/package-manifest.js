'use strict'

// Name and version of the application, as its package.json has them: the nearest to the script that was started, or,
// where that is a tool out of node_modules (fastify-cli, a test runner), to the working directory.

const fs = require('node:fs')
const path = require('node:path')

const BYTES_MAX = 1024 * 1024

module.exports = { packageManifest }

/** @returns {{ name: string, version: string | undefined } | undefined} */
function packageManifest () {
  try {
    const script = process.argv[1]
    const started = script === undefined ? undefined : fs.realpathSync.native(script) // the other one asks about each folder of the path
    const isTool = started === undefined || started.split(path.sep).includes('node_modules')
    return nearest(isTool ? process.cwd() : path.dirname(started))
  } catch {
    return undefined // no such script, or a working directory that is gone
  }
}

function nearest (directory) {
  for (let parent = path.dirname(directory); ; parent = path.dirname(directory)) {
    const manifest = read(path.join(directory, 'package.json'))
    if (manifest !== undefined || parent === directory) return manifest
    directory = parent
  }
}

// A package.json without a name ({ "type": "commonjs" }) marks a folder of a package, the search goes on.
function read (file) {
  try {
    const stat = fs.statSync(file, { throwIfNoEntry: false })
    if (stat === undefined || stat.size > BYTES_MAX) return undefined
    const manifest = JSON.parse(fs.readFileSync(file, 'utf8'))
    const name = textIn(manifest, 'name')
    return name === undefined ? undefined : { name, version: textIn(manifest, 'version') }
  } catch {
    return undefined
  }
}

function textIn (manifest, key) {
  const value = Object.hasOwn(manifest, key) ? manifest[key] : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}
