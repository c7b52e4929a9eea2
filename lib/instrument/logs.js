'use strict'

// trace_id, span_id and trace_flags on the lines of `request.log`, Fastify's own included.
//
// The bindings are set on the request's own child logger: a further child would cost several times more,
// and `reply.log` would not be it. A `childLoggerFactory` of the user's may return a logger that is shared;
// then both get a child of it.

const kStamped = Symbol('light-trace.stamped')

class LogStamp {
  #instanceLog

  /** Null where there is nothing to stamp: no logger, or one that is not pino's kind. */
  static of (app) {
    return typeof app.log?.setBindings === 'function' && typeof app.log.child === 'function' ? new LogStamp(app.log) : null
  }

  constructor (instanceLog) {
    this.#instanceLog = instanceLog
  }

  stamp (request, reply, span) {
    const { log } = request
    if (!span.valid || log === undefined || log === null) return
    const bindings = { trace_id: span.traceId, span_id: span.spanId, trace_flags: span.flags.toString(16).padStart(2, '0') }
    try {
      if (log === this.#instanceLog || typeof log.setBindings !== 'function' || Object.hasOwn(log, kStamped)) {
        if (typeof log.child !== 'function') return
        const child = log.child(bindings)
        if (reply.log === log) reply.log = child
        request.log = child
        return
      }
      log[kStamped] = true
      log.setBindings(bindings)
    } catch {
      // A frozen logger, or one that is not what it looks like: its lines go without ids.
    }
  }
}

module.exports = { LogStamp }
