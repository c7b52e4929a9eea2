'use strict'

// An instrumentation scope: which code made a span. Shared by all its spans; it carries a slot in which
// `otlp` keeps its encoded bytes.

// Which version of OpenTelemetry's semantic conventions our attributes follow: with it a collector can translate them
// to another. It stands on the resource and on our own scope; a tracer of the user's has its own.
// https://opentelemetry.io/docs/specs/otel/schemas/
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.44.0'

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

module.exports = { Scope, SCHEMA_URL }
