'use strict'

// How traces come in and go out. By default, W3C in code of our own, which knows words instead of strings;
// this file is about everything else: OTEL_PROPAGATORS, and a propagator that stands in the API's slot.

const { createRequire } = require('node:module')
const { join } = require('node:path')
const { slots } = require('./slots')
const { TraceContextPropagator, BaggagePropagator, CompositePropagator, W3C } = require('./w3c-propagator')

const ownFile = typeof __filename === 'string' ? __filename : undefined // none in a bundle that is an ES module
const B3_PACKAGE = '@opentelemetry/propagator-b3'
const B3_MULTI_HEADER = 1 // B3InjectEncoding.MULTI_HEADER
const W3C_FIELDS = ['traceparent', 'tracestate', 'baggage']

/**
 * @param {{ propagators: string[] }} settings
 * @param {object | undefined} own what we put into the slot ourselves
 * @returns {TextMapPropagator | null} null for our own W3C code
 */
function propagatorFor ({ propagators }, report, own) {
  const handedOver = slots()?.propagation
  if (handedOver !== undefined && handedOver !== null && handedOver !== own && speaksMore(handedOver)) return handedOver
  if (propagators.length === 2 && propagators[0] === 'tracecontext' && propagators[1] === 'baggage') return null
  const made = propagators.map((name) => make(name, report)).filter((propagator) => propagator !== undefined)
  // Names that all turned out to be no use are ignored like any wrong variable.
  return made.length === 0 && propagators.length > 0 ? null : new CompositePropagator(made)
}

// An SDK's usual propagator is W3C too: ours reads the same headers, and more strictly.
function speaksMore (propagator) {
  try {
    return propagator.fields().some((field) => !W3C_FIELDS.includes(String(field).toLowerCase()))
  } catch {
    return false
  }
}

function make (name, report) {
  if (name === 'tracecontext') return new TraceContextPropagator()
  if (name === 'baggage') return new BaggagePropagator()
  const B3Propagator = load()
  if (B3Propagator === undefined) {
    report.once('LT_WARN_PROPAGATOR', `OTEL_PROPAGATORS names ${name}: install ${B3_PACKAGE}`)
    return undefined
  }
  return new B3Propagator(name === 'b3multi' ? { injectEncoding: B3_MULTI_HEADER } : {})
}

// From where the application is, which has installed it.
function load () {
  for (const base of [process.argv[1], join(process.cwd(), 'index.js'), ownFile]) {
    try {
      const { B3Propagator } = createRequire(base)(B3_PACKAGE)
      if (typeof B3Propagator === 'function') return B3Propagator
    } catch {
      // Not there: the next place, or nothing.
    }
  }
}

/** Reads and writes Node's own header objects, and Headers. */
const headersGetter = {
  get (headers, name) {
    return headers[name.toLowerCase()]
  },
  keys: (headers) => Object.keys(headers)
}

const headersSetter = {
  set (headers, name, value) {
    if (typeof headers.set === 'function') headers.set(name, value)
    else headers[name] = value
  }
}

module.exports = { propagatorFor, headersGetter, headersSetter, W3C }
