'use strict'

// pg publishes no channels, and somebody who tries an app by `npx light-trace app.js` has not called `traceClient`. The library
// patches nothing; this is a process of the command, for development, and it gives each client and pool of the app's pg to
// `traceClient` when it connects. See decision D18.

const { createRequire } = require('node:module')
const { dirname, join, resolve } = require('node:path')

/** Traces the pg that the app has, before the app is loaded. Returns whether it has one. */
function tracePg (lightTrace) {
  let hasPg = false
  for (const folder of new Set([process.cwd(), dirname(resolve(process.argv[1] ?? '.'))])) {
    let pg
    try {
      pg = createRequire(join(folder, 'package.json'))('pg')
    } catch {
      continue // this app has none
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
