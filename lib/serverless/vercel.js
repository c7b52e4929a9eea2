'use strict'

// Vercel freezes a process when the response is out, unless the request has asked it to wait. It is asked from the
// request's own context, which Vercel keeps under a symbol; `@vercel/functions` reads the same.

const CONTEXTS = [Symbol.for('@vercel/request-context'), Symbol.for('@next/request-context')]

/** The platform's `waitUntil(promise)` for the running request, or null. */
function platformWaitUntil () {
  for (const key of CONTEXTS) {
    try {
      const holder = globalThis[key]
      const context = typeof holder?.get === 'function' ? holder.get() : undefined
      if (typeof context?.waitUntil === 'function') return (promise) => context.waitUntil(promise)
    } catch {
      // Theirs: what throws is not there.
    }
  }
  return null
}

/**
 * Holds the process until the spans of each request are delivered. The hook is added after light-trace's own, so that a
 * response's span has ended when its 'close' comes here.
 * @param {FastifyInstance} app
 * @param {Tracer} tracer
 */
function holdUntilDelivered (app, tracer) {
  app.addHook('onRequest', (request, reply, done) => {
    const waitUntil = platformWaitUntil()
    if (waitUntil !== null) waitUntil(delivered(tracer, reply.raw))
    done()
  })
}

function delivered (tracer, response) {
  return new Promise((resolve) => {
    response.once('close', () => {
      tracer.drained().then(() => tracer.flush()).then(resolve, resolve)
    })
  })
}

module.exports = { platformWaitUntil, holdUntilDelivered }
