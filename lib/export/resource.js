'use strict'

// Who sends the spans, as SDK processors and exporters want it: the Resource of SDK 2.x and 3.x, which they
// tell apart by identity. There is nothing to wait for in it.

const { SCHEMA_URL } = require('../span/scope')

class Resource {
  constructor (attributes) {
    this.attributes = attributes
    this.asyncAttributesPending = false
  }

  get schemaUrl () { return SCHEMA_URL }

  async waitForAsyncAttributes () {}

  getRawAttributes () {
    return Object.entries(this.attributes)
  }

  merge (other) {
    return new Resource({ ...this.attributes, ...other?.attributes })
  }
}

module.exports = { Resource }
