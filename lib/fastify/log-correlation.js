'use strict'

// trace_id, span_id and trace_flags on the lines of `request.log`, Fastify's own included.
//
// The bindings are set on the request's own child logger: a further child would cost several times more,
// and `reply.log` would not be it. That it is the request's own is known only of Fastify's own factory. A
// `childLoggerFactory` of the user's may return one that others write to as well, which must never carry a
// request's ids; then `request.log` and `reply.log` become a child of it.

const DEFAULT_FACTORY = 'defaultChildLoggerFactory'
const KEYS = ['trace_id', 'span_id', 'trace_flags']
const FLAGS = ['00', '01', '02', '03']

class LogCorrelation {
  #instanceLog
  #isFactoryOnRoutes = false
  #plain // what loggers of pino have in common whose bindings are a text that ours can be added to; null: they have not

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
    const { traceId, spanId } = span
    const flags = FLAGS[span.flags] ?? span.flags.toString(16).padStart(2, '0')
    try {
      if (log !== this.#instanceLog && this.#isOwn(request) && typeof log.setBindings === 'function') {
        this.#bind(log, traceId, spanId, flags)
        return
      }
      if (typeof log.child !== 'function') return
      const child = log.child({ trace_id: traceId, span_id: spanId, trace_flags: flags })
      if (reply.log === log) reply.log = child
      request.log = child
    } catch {
      // A frozen logger, or one that is not what it looks like: its lines go without ids.
    }
  }

  // pino's setBindings makes JSON of each value anew. Where it is seen to add to the logger's text just what is added here, with
  // nobody's serializer or redaction, later requests add it themselves: pino has its symbols for such integrations.
  #bind (log, traceId, spanId, flags) {
    const text = `,"trace_id":"${traceId}","span_id":"${spanId}","trace_flags":"${flags}"`
    const plain = this.#plain
    if (plain !== undefined && plain !== null && log[plain.serializersKey] === plain.serializers) {
      log[plain.bindingsKey] += text
      return
    }
    const bindings = { trace_id: traceId, span_id: spanId, trace_flags: flags }
    if (plain !== undefined) return log.setBindings(bindings)
    const bindingsKey = symbolOf(log, 'pino.chindings')
    const before = log[bindingsKey]
    log.setBindings(bindings)
    const serializersKey = symbolOf(log, 'pino.serializers')
    const serializers = log[serializersKey]
    const isPlain = typeof before === 'string' && log[bindingsKey] === before + text &&
      typeof serializers === 'object' && serializers !== null && !KEYS.some((key) => key in serializers)
    this.#plain = isPlain ? { bindingsKey, serializersKey, serializers } : null
  }

  #isOwn ({ server }) {
    return !this.#isFactoryOnRoutes && server.childLoggerFactory?.name === DEFAULT_FACTORY
  }
}

// A child of pino inherits from its parent.
function symbolOf (log, description) {
  for (let owner = log; owner !== null; owner = Object.getPrototypeOf(owner)) {
    const found = Object.getOwnPropertySymbols(owner).find((symbol) => symbol.description === description)
    if (found !== undefined) return found
  }
}

module.exports = { LogCorrelation }
