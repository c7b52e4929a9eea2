'use strict'

// What all copies of this package in one process share: the AsyncLocalStorage, who registered with the
// OpenTelemetry API, which applications are traced, and what their exporters send. Two copies happen (a monorepo, a
// linked package); each with a storage of its own would lose the other's requests.

const { AsyncLocalStorage } = require('node:async_hooks')
const { OpenApps } = require('./open-apps')

const KEY = Symbol.for('light-trace.globals')

// Raised when the members change their meaning: copies that cannot read each other then share nothing.
const SHAPE = 4

module.exports = { processState: find() ?? make() }

function find () {
  const there = globalThis[KEY]
  return there !== undefined && there.shape === SHAPE ? there : undefined
}

function make () {
  const made = {
    shape: SHAPE,
    storage: new AsyncLocalStorage(),
    registrations: new WeakMap(), // an application's server -> how it is traced
    openApps: new OpenApps(), // their tracers
    exporterTraceparents: new Set(), // the traceparents that our exporters send
    collectorLogs: new Map(), // a collector's URL -> what was logged of it, see lib/export/export-log.js
    facade: null, // what stands in the API's slots, see lib/otel/api-globals.js
    hasSealed: false // whether the API's global object was made by us
  }
  if (globalThis[KEY] === undefined) Object.defineProperty(globalThis, KEY, { value: made, configurable: true })
  return made
}
