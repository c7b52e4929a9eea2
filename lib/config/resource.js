'use strict'

// Who reports: the attributes that every span of this registration shares.

const os = require('node:os')
const { randomUUID } = require('node:crypto')
const { EMPTY } = require('./checks')
const { packageManifest } = require('./package-manifest')
const { detectPlatform } = require('./platform')
const { version } = require('../../package.json')

const UNKNOWN_SERVICE = 'unknown_service:node'
const ENVIRONMENT_LENGTH_MAX = 65536
const NONE = Object.freeze([])

module.exports = { resolveResource }

// From the weakest to the strongest: what can be found out, OTEL_ENTITIES, OTEL_RESOURCE_ATTRIBUTES, code.
// service.name: serviceName, resource['service.name'], OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_ENTITIES,
// package.json, the name of the function that a platform runs.
/** @returns {{ attributes: object, entityRefs: object[] }} */
function resolveResource (given = EMPTY, serviceName, env) {
  // Few have it, so its reader is required where there is one.
  const reader = env.text('OTEL_ENTITIES') === undefined ? null : require('./entities')
  const read = reader === null ? NONE : reader.readEntities(env)
  const entities = reader === null ? EMPTY : reader.entityAttributes(read)
  const fromEnvironment = parseAttributes(env)
  const manifest = packageManifest() ?? { name: env.text('npm_package_name'), version: env.text('npm_package_version') }
  const platform = detectPlatform(env)
  const attributes = Object.assign(Object.create(null), detected(manifest.version), platform, entities, fromEnvironment, given)
  attributes['service.name'] = String(serviceName ?? given['service.name'] ?? env.text('OTEL_SERVICE_NAME') ??
    fromEnvironment['service.name'] ?? entities['service.name'] ?? manifest.name ?? platform['faas.name'] ?? UNKNOWN_SERVICE)
  if (attributes['service.version'] === undefined) delete attributes['service.version']
  return Object.freeze({
    attributes: Object.freeze(attributes),
    entityRefs: reader === null ? NONE : Object.freeze(reader.entityRefs(read, attributes))
  })
}

function detected (serviceVersion) {
  return {
    'service.name': UNKNOWN_SERVICE, // the first of the list, where readers look for it
    'service.version': serviceVersion,
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
