'use strict'

// An instrumentation scope: which code made a span. Shared by all its spans; it carries a slot in which
// `otlp` keeps its encoded bytes.

class Scope {
  constructor (name, version, schemaUrl) {
    this.name = name
    this.version = version
    this.schemaUrl = schemaUrl
    // Not enumerable: exporters print scopes.
    Object.defineProperty(this, 'encoded', { value: null, writable: true, enumerable: false })
    Object.defineProperty(this, 'key', { value: JSON.stringify([name, version, schemaUrl]), enumerable: false })
  }
}

module.exports = { Scope }
