'use strict'

// trace_id, span_id and trace_flags on the lines of `request.log`, Fastify's own included.
//
// The bindings are set on the request's own child logger: a further child would cost several times more,
// and `reply.log` would not be it. That it is the request's own is known only of Fastify's own factory. A
// `childLoggerFactory` of the user's may return one that others write to as well, which must never carry a
// request's ids; then `request.log` and `reply.log` become a child of it.

const DEFAULT_FACTORY = 'defaultChildLoggerFactory'

class LogCorrelation {
  #instanceLog
  #isFactoryOnRoutes = false

  /** Null where there is nothing to stamp: no logger, or one that is not pino's kind. */
  static of (app) {
    return typeof app.log?.setBindings === 'function' && typeof app.log.child === 'function' ? new LogCorrelation(app) : null
  }

  constructor (app) {
    this.#instanceLog = app.log
    // A route's own factory is seen here only.
    const watch = (route) => { if (route.childLoggerFactory !== undefined) this.#isFactoryOnRoutes = true }
    app.addHook('onRoute', function lightTraceOnRoute (route) { watch(route) })
  }

  // HOT, once per request where there is a logger.
  correlate (request, reply, span) {
    const { log } = request
    // Switched off: no line will be written.
    if (!span.valid || log === undefined || log === null || log.levelVal === Infinity) return
    const bindings = { trace_id: span.traceId, span_id: span.spanId, trace_flags: span.flags.toString(16).padStart(2, '0') }
    try {
      if (log !== this.#instanceLog && this.#isOwn(request) && typeof log.setBindings === 'function') {
        log.setBindings(bindings)
        return
      }
      if (typeof log.child !== 'function') return
      const child = log.child(bindings)
      if (reply.log === log) reply.log = child
      request.log = child
    } catch {
      // A frozen logger, or one that is not what it looks like: its lines go without ids.
    }
  }

  #isOwn ({ server }) {
    return !this.#isFactoryOnRoutes && server.childLoggerFactory?.name === DEFAULT_FACTORY
  }
}

module.exports = { LogCorrelation }
