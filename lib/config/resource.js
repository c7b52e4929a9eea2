'use strict'

// Who reports: the attributes that every span of this registration shares.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { randomUUID } = require('node:crypto')
const { EMPTY } = require('./checks')
const { version } = require('../../package.json')

const UNKNOWN_SERVICE = 'unknown_service:node'
const ENVIRONMENT_LENGTH_MAX = 65536
const PACKAGE_BYTES_MAX = 1024 * 1024

module.exports = { resolveResource }

// From the weakest to the strongest: what can be found out, OTEL_RESOURCE_ATTRIBUTES, code.
// service.name: serviceName, resource['service.name'], OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, package.json.
function resolveResource (given = EMPTY, serviceName, env) {
  const fromEnvironment = parseAttributes(env)
  const attributes = Object.assign(Object.create(null), detected(), fromEnvironment, given)
  attributes['service.name'] = String(serviceName ?? given['service.name'] ?? env.text('OTEL_SERVICE_NAME') ??
    fromEnvironment['service.name'] ?? packageName() ?? env.text('npm_package_name') ?? UNKNOWN_SERVICE)
  return Object.freeze(attributes)
}

function detected () {
  return {
    'service.name': UNKNOWN_SERVICE, // the first of the list, where readers look for it
    'service.instance.id': randomUUID(),
    'telemetry.sdk.name': 'light-trace',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': version,
    'process.pid': process.pid,
    'process.runtime.name': 'nodejs',
    'process.runtime.version': process.versions.node,
    'host.name': os.hostname()
  }
}

// 'k=v,k2=v2', percent-encoded. "Resource SDK": in case of any error the entire value is discarded.
function parseAttributes (env) {
  const name = 'OTEL_RESOURCE_ATTRIBUTES'
  const text = env.text(name) ?? ''
  const attributes = Object.create(null)
  try {
    if (text.length > ENVIRONMENT_LENGTH_MAX) throw new RangeError('too long')
    for (const pair of text.split(',')) {
      if (pair.trim() !== '') addPair(attributes, pair)
    }
    return attributes
  } catch {
    env.ignored(name, text, "a list such as 'k=v,k2=v2', percent-encoded")
    return Object.create(null)
  }
}

function addPair (attributes, pair) {
  const equals = pair.indexOf('=')
  const key = decodeURIComponent(pair.slice(0, Math.max(equals, 0)).trim())
  if (key === '') throw new TypeError('no name')
  attributes[key] = decodeURIComponent(pair.slice(equals + 1).trim())
}

// The name of the app's package.json: the nearest to the script that was started, or, where that is a
// tool out of node_modules (fastify-cli, a test runner), to the working directory.
function packageName () {
  try {
    const script = process.argv[1]
    const started = script === undefined ? undefined : fs.realpathSync(script)
    const isTool = started === undefined || started.split(path.sep).includes('node_modules')
    return nearestPackageName(isTool ? process.cwd() : path.dirname(started))
  } catch {
    return undefined // no such script, or a working directory that is gone
  }
}

function nearestPackageName (directory) {
  for (let parent = path.dirname(directory); ; parent = path.dirname(directory)) {
    const name = nameIn(path.join(directory, 'package.json'))
    if (name !== undefined || parent === directory) return name
    directory = parent
  }
}

// A package.json without a name ({ "type": "commonjs" }) marks a folder of a package, the search goes on.
function nameIn (file) {
  try {
    if (fs.statSync(file).size > PACKAGE_BYTES_MAX) return undefined
    const manifest = JSON.parse(fs.readFileSync(file, 'utf8'))
    return Object.hasOwn(manifest, 'name') && typeof manifest.name === 'string' && manifest.name !== '' ? manifest.name : undefined
  } catch {
    return undefined
  }
}
