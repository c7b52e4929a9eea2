'use strict'

// The resource of a request's part. What is made of it is made once, however many scopes it has, and only if it is asked for.

const { createHash } = require('node:crypto')
const { readResource } = require('./span-detail')

const SERVICE = 'service.name'
const NAME_MAX = 200

class SentResource {
  #hash = null
  #copy = null
  #service = null

  /** @param {Buffer} bytes a part of the request's body */
  constructor (bytes, schemaUrl) {
    this.bytes = bytes
    this.schemaUrl = schemaUrl
  }

  /** Is the same for the same resource of another request. */
  get hash () {
    this.#hash ??= createHash('sha256').update(this.bytes).update(this.schemaUrl).digest('base64')
    return this.#hash
  }

  /** So that the request's body can be freed. */
  get copy () {
    this.#copy ??= Buffer.from(this.bytes)
    return this.#copy
  }

  /** @throws Malformed */
  get service () {
    this.#service ??= cut(serviceOf(this.bytes))
    return this.#service
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

module.exports = { SentResource }
