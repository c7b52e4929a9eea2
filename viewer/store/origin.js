'use strict'

// The origin of a span: its resource and scope. Thousands of spans share one. It is removed with the last trace, line or series that has it.

const { readScope } = require('../otlp/span-detail')

const ORIGIN_BYTES_MAX = 65_536 // what comes with a larger resource and scope is dropped

// The memory of the object, its key and its two buffers in addition to their bytes.
const OVERHEAD_BYTES = 1000

class Origin {
  constructor (key, { resource, scope, scopeSchemaUrl }) {
    this.key = key
    this.resourceKey = resource.hash // the same for the same resource
    this.resource = resource.copy
    this.scope = Buffer.from(scope) // a copy, so that the request's body can be freed
    this.resourceSchemaUrl = resource.schemaUrl
    this.scopeSchemaUrl = scopeSchemaUrl
    readScope(this.scope) // throws now if it cannot be read later
    this.service = resource.service
    this.holders = 0
    this.bytes = OVERHEAD_BYTES + 2 * sizeOf(resource, scope, scopeSchemaUrl)
  }
}

function sizeOf (resource, scope, scopeSchemaUrl) {
  return resource.bytes.length + resource.schemaUrl.length + scope.length + scopeSchemaUrl.length
}

class Origins {
  #byKey = new Map()
  bytes = 0

  /** @returns {Origin | null} null if it is too large @throws Malformed */
  of (described) {
    const { resource, scope, scopeSchemaUrl } = described
    if (sizeOf(resource, scope, scopeSchemaUrl) > ORIGIN_BYTES_MAX) return null
    const key = `${resource.hash}\n${scope.latin1Slice()}\n${scopeSchemaUrl}`
    return this.#byKey.get(key) ?? new Origin(key, described)
  }

  hold (origin) {
    if (origin.holders++ !== 0) return
    this.#byKey.set(origin.key, origin)
    this.bytes += origin.bytes
  }

  release (origin) {
    if (--origin.holders !== 0) return
    this.#byKey.delete(origin.key)
    this.bytes -= origin.bytes
  }
}

/** The origins that one part of the store holds, so that they count against its share of the memory too. */
class HeldOrigins {
  #origins
  #counts = new Map()
  bytes = 0

  constructor (origins) {
    this.#origins = origins
  }

  hold (origin) {
    const count = this.#counts.get(origin) ?? 0
    this.#counts.set(origin, count + 1)
    if (count === 0) this.bytes += origin.bytes
    this.#origins.hold(origin)
  }

  release (origin) {
    const count = this.#counts.get(origin) - 1
    if (count > 0) this.#counts.set(origin, count)
    else {
      this.#counts.delete(origin)
      this.bytes -= origin.bytes
    }
    this.#origins.release(origin)
  }
}

module.exports = { Origins, HeldOrigins }
