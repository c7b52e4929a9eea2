'use strict'

// The origin of a span: its resource and scope. Thousands of spans share one. It is removed with the last trace that has it.

const { readResource, readScope } = require('../otlp/span-detail')

const SERVICE = 'service.name'
const NAME_MAX = 200

// The memory of the object, its key and its two buffers in addition to their bytes.
const OVERHEAD_BYTES = 1000

class Origin {
  constructor (key, resourceKey, { resource, scope, resourceSchemaUrl, scopeSchemaUrl }) {
    this.key = key
    this.resourceKey = resourceKey
    this.resource = Buffer.from(resource) // copies, so that the request's body can be freed
    this.scope = Buffer.from(scope)
    this.resourceSchemaUrl = resourceSchemaUrl
    this.scopeSchemaUrl = scopeSchemaUrl
    readScope(this.scope) // throws now if it cannot be read later
    this.service = cut(serviceOf(this.resource))
    this.traces = 0
    this.bytes = OVERHEAD_BYTES + 3 * (resource.length + scope.length)
  }
}

function serviceOf (resource) {
  const attribute = readResource(resource).find(({ key }) => key === SERVICE)
  return attribute === undefined ? '' : String(attribute.value)
}

// A copy, because the result of slice() keeps the whole text in memory.
function cut (text) {
  return Buffer.from(text.slice(0, NAME_MAX)).toString()
}

class Origins {
  #byKey = new Map()
  bytes = 0

  /** @throws Malformed */
  of (described) {
    const resourceKey = described.resource.latin1Slice() + described.resourceSchemaUrl
    const key = `${resourceKey}\n${described.scope.latin1Slice()}\n${described.scopeSchemaUrl}`
    return this.#byKey.get(key) ?? new Origin(key, resourceKey, described)
  }

  hold (origin) {
    if (origin.traces++ !== 0) return
    this.#byKey.set(origin.key, origin)
    this.bytes += origin.bytes
  }

  release (origin) {
    if (--origin.traces !== 0) return
    this.#byKey.delete(origin.key)
    this.bytes -= origin.bytes
  }
}

module.exports = { Origins }
