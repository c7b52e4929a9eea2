'use strict'

// The `b3` and `b3multi` propagators of OTEL_PROPAGATORS, from the application's own copy of OpenTelemetry's package.

const { attempt } = require('../runtime/report.js')
const { loadFromApp } = require('../otel/api-facade.js')

const PACKAGE = '@opentelemetry/propagator-b3'
const MULTI_HEADER = 1 // B3InjectEncoding.MULTI_HEADER

/** @returns {TextMapPropagator | undefined} undefined if the package is not installed */
function propagator (name, report) {
  const B3Propagator = attempt(() => loadFromApp(PACKAGE).B3Propagator)
  if (B3Propagator !== undefined) return new B3Propagator(name === 'b3multi' ? { injectEncoding: MULTI_HEADER } : {})
  report.warn('LT_WARN_PROPAGATOR', `OTEL_PROPAGATORS contains ${name}, which needs the package ${PACKAGE}`, name)
}

module.exports = { propagator }
