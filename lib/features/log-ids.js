'use strict'

// trace_id, span_id and trace_flags on the lines of `request.log`, Fastify's own included.
//
// The bindings are set on the request's own child logger: a further child would cost several times more. A logger of the user's
// `childLoggerFactory` may be shared by several requests: then `request.log` and `reply.log` become a child of it.

const { Buffer } = require('node:buffer')
const { writeIds } = require('../context/ids.js')
const { kLoggedSpan, symbolOf } = require('../fastify/keys.js')

const KEYS = ['trace_id', 'span_id', 'trace_flags']

// The text that is added to a logger's bindings: one flat string, as a joined one would be flattened for each line.
const PATTERN = `,"trace_id":"${'0'.repeat(32)}","span_id":"${'0'.repeat(16)}","trace_flags":"00"`
const TRACE_ID_AT = PATTERN.indexOf('0')
const SPAN_ID_AT = PATTERN.indexOf('0', TRACE_ID_AT + 32)
const FLAGS_AT = PATTERN.length - 2 // the second of two digits
const FLAGS_MAX = 9
const ZERO = 0x30
const text = Buffer.from(PATTERN)
const textView = new DataView(text.buffer, text.byteOffset, text.length)

class LogCorrelation {
  #instanceLog
  #logs // AppLogs, where lines are exported, else null
  #isFactoryOnRoutes = false
  #factory // the application's childLoggerFactory where it may be Fastify's own, else null
  #plain = undefined // what pino's loggers have in common where text can be added to their bindings, else null; found with the first

  constructor (app, logs) {
    this.#instanceLog = app.log
    this.#logs = logs
    this.#factory = app.childLoggerFactory?.length === FACTORY_LENGTH ? app.childLoggerFactory : null
    const correlation = this
    app.addHook('onRoute', function lightTraceOnRoute (route) {
      if (route.childLoggerFactory !== undefined) correlation.#isFactoryOnRoutes = true
    })
  }

  /** Adds the ids of `span` to the request's logger. HOT, once per request where there is a logger. */
  started (request, reply, span, route) {
    const { log } = request
    // Switched off: no line will be written.
    if (!span.valid || log === undefined || log === null || log.levelVal === Infinity) return
    if (this.#logs !== null) this.#logs.begun(request, span)
    try {
      if (log !== this.#instanceLog && this.#isOwn(request, route) && typeof log.setBindings === 'function') this.bind(log, span)
      else if (!this.bindChild(request, reply, log, span)) return
      if (this.#logs !== null) request.log[kLoggedSpan] = span
    } catch {} // a frozen logger, or one that is not what it looks like: its lines go without ids
  }

  // pino's setBindings makes JSON of each value anew. If its first call has added just our text, without a serializer or
  // redaction, later requests append it themselves: pino exports its symbols for such integrations.
  bind (log, span) {
    const plain = this.#plain
    if (plain === undefined) this.#bindFirst(log, span)
    else if (plain !== null && span.flags <= FLAGS_MAX && log[plain.serializersKey] === plain.serializers && log.setBindings === plain.setBindings) {
      log[plain.bindingsKey] += bindingsText(span)
    } else log.setBindings(bindingsOf(span))
  }

  #bindFirst (log, span) {
    this.#plain = null
    const { setBindings } = log
    const bindingsKey = symbolOf(log, 'pino.chindings')
    const before = log[bindingsKey]
    log.setBindings(bindingsOf(span))
    const serializersKey = symbolOf(log, 'pino.serializers')
    const serializers = log[serializersKey]
    const isPlain = typeof before === 'string' && span.flags <= FLAGS_MAX && log[bindingsKey] === before + bindingsText(span) &&
      typeof serializers === 'object' && serializers !== null && !KEYS.some((key) => key in serializers) &&
      ownerOf(log, 'setBindings') === ownerOf(log, 'bindings')
    if (isPlain) this.#plain = { bindingsKey, serializersKey, serializers, setBindings }
  }

  /** Gives a request whose logger others may have a child of it. Returns whether it could. */
  bindChild (request, reply, log, span) {
    if (typeof log.child !== 'function') return false
    const child = log.child(bindingsOf(span))
    if (reply.log === log) reply.log = child
    request.log = child
    return true
  }

  // Found once per route: a factory is a look-up in a dictionary, and Fastify takes no other one once it has started.
  #isOwn ({ server, id, log }, route) {
    if (route.loggingServer === server) return true
    if (this.#isFactoryOnRoutes || server.childLoggerFactory !== this.#factory || !namesRequest(log, id)) return false
    route.loggingServer = server
    return true
  }
}

/** Where lines have no ids, and are exported: the logger knows its request's span, and says what it said. */
class LogFollower extends LogCorrelation {
  bind () {}
  bindChild () { return false }
}

const FACTORY_LENGTH = 3 // of Fastify's own; the documentation's form takes the request too

// Whether a logger is a child that was made for this very request, as Fastify's own factory makes it: the request's id is its last
// binding. A minifier changes that factory's name and its text, and there is no way to get it and compare.
function namesRequest (log, id) {
  const bindings = Object.getOwnPropertyDescriptor(log, symbolOf(log, 'pino.chindings'))?.value
  return typeof bindings === 'string' && bindings.endsWith(`:${JSON.stringify(id)}`)
}

function bindingsOf ({ traceId, spanId, flags }) {
  return { trace_id: traceId, span_id: spanId, trace_flags: flags.toString(16).padStart(2, '0') }
}

// HOT, once per request where there is a logger. Budget: 1 string.
function bindingsText (span) {
  writeIds(textView, span, TRACE_ID_AT, SPAN_ID_AT)
  text[FLAGS_AT] = ZERO | span.flags
  return text.latin1Slice(0, PATTERN.length)
}

// A method that replaces pino's has another owner.
function ownerOf (log, name) {
  let owner = log
  while (owner !== null && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner)
  return owner
}

function started (app, { parts, settings }) {
  const Follower = settings.logIds ? LogCorrelation : LogFollower
  return new Follower(app, parts.get('logs') ?? null)
}

module.exports = { started }
