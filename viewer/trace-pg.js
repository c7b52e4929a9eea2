'use strict'

// pg publishes no channels, and an app that is tried with `npx light-trace app.js` does not call `traceClient`. The library patches
// nothing, but this process was started by the command, for development. So this file patches the app's pg, and passes each client
// and pool to `traceClient` when it connects. See decision D18.

const { createRequire } = require('node:module')
const { dirname, join, resolve } = require('node:path')

/** Patches the app's pg before the app is loaded. Returns whether the app has pg. */
function tracePg (lightTrace) {
  let hasPg = false
  for (const folder of new Set([process.cwd(), dirname(resolve(process.argv[1] ?? '.'))])) {
    let pg
    try {
      pg = createRequire(join(folder, 'package.json'))('pg')
    } catch {
      continue // no pg here
    }
    for (const { prototype } of [pg.Client, pg.Pool]) connectTraced(prototype, lightTrace)
    hasPg = true
  }
  return hasPg
}

const seen = new WeakSet()

function connectTraced (prototype, { traceClient }) {
  const { connect } = prototype
  if (seen.has(connect)) return
  prototype.connect = function (...args) {
    if (seen.has(this)) return Reflect.apply(connect, this, args)
    seen.add(this)
    return traceClient(this).connect(...args)
  }
  seen.add(prototype.connect)
}

module.exports = { tracePg }
