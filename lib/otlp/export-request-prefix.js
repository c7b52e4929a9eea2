'use strict'

// What stands around the spans of one request to the collector.
//
//   ExportTraceServiceRequest  0A <len, 5 bytes>          resource_spans
//     ResourceSpans            0A <len> resource
//                              1A <len> schema URL
//                              12 <len, 4 bytes>          scope_spans, from the chunks
//       ScopeSpans             0A <len> scope, then spans

const { Buffer } = require('node:buffer')
const { SCHEMA_URL } = require('../span/scope')
const { encodeAttributes, field, text } = require('./attribute-encoder')

const SCOPES_MAX = 256

class ExportRequestPrefix {
  /** @param {{ attributes: object, entityRefs?: object[] }} resource as config/resource.js resolves it */
  constructor (resource) {
    // The resource's schema URL comes after scope_spans by its number; a reader takes any order.
    this.resource = Buffer.concat([encodeResource(resource), text(0x1a, SCHEMA_URL)])
  }

  /** The bytes before `chunkBytes` bytes of scope_spans. */
  head (chunkBytes) {
    const head = Buffer.allocUnsafe(6 + this.resource.length)
    head[0] = 0x0a
    let rest = this.resource.length + chunkBytes
    for (let i = 1; i < 5; i++) {
      head[i] = (rest & 0x7f) | 0x80
      rest = rest >>> 7
    }
    head[5] = rest & 0x7f
    head.set(this.resource, 6)
    return head
  }
}

function encodeResource ({ attributes, entityRefs = [] }) {
  const list = []
  for (const key of Object.keys(attributes)) list.push(key, attributes[key])
  return field(0x0a, Buffer.concat([encodeAttributes(0x0a, list), ...entityRefs.map(encodeEntityRef)]))
}

function encodeEntityRef ({ schemaUrl, type, idKeys, descriptionKeys }) {
  return field(0x1a, Buffer.concat([
    ...(schemaUrl === '' ? [] : [text(0x0a, schemaUrl)]),
    text(0x12, type),
    ...idKeys.map((key) => text(0x1a, key)),
    ...descriptionKeys.map((key) => text(0x22, key))
  ]))
}

const scopes = new Map()

/** A scope as the first fields of scope_spans. The same bytes for the same scope, so that they can be compared by identity. */
function encodeScope (scope) {
  return scope.encoded ?? remember(scope)
}

function remember (scope) {
  const { key, name, version = '', schemaUrl = '' } = scope
  let bytes = scopes.get(key)
  if (bytes === undefined) {
    const parts = [field(0x0a, version === '' ? text(0x0a, name) : Buffer.concat([text(0x0a, name), text(0x12, version)]))]
    // By number it comes after the spans; a reader takes any order.
    if (schemaUrl !== '') parts.push(text(0x1a, schemaUrl))
    bytes = new Uint8Array(Buffer.concat(parts)) // as all that the writer copies: one class, one code
    if (scopes.size >= SCOPES_MAX) scopes.clear() // names made of user data: start over rather than grow
    scopes.set(key, bytes)
  }
  scope.encoded = bytes
  return bytes
}

module.exports = { ExportRequestPrefix, encodeScope }
