'use strict'

// Which version of OpenTelemetry's semantic conventions our attributes follow: with it a collector can translate them
// to another. It stands on the resource and on our own scope; a tracer of the user's has its own.
// https://opentelemetry.io/docs/specs/otel/schemas/

module.exports = { SCHEMA_URL: 'https://opentelemetry.io/schemas/1.44.0' }
