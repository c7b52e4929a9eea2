'use strict'

// Adds trace_id, span_id and trace_flags to the lines of `request.log`, including Fastify's own lines.
//
// The bindings are set on the request's own child logger, because another child would cost several times more. Several requests may
// share a logger from the user's `childLoggerFactory`. In that case, `request.log` and `reply.log` are replaced by a child of it.

const { Buffer } = require('node:buffer')
const { writeIds } = require('../context/ids.js')
const { kLoggedSpan, symbolOf } = require('../fastify/keys.js')

const KEYS = ['trace_id', 'span_id', 'trace_flags']

// The text that is added to a logger's bindings. It is one flat string: V8 would flatten a concatenated one for each line.
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
  #logs // AppLogs, or null if lines are not exported
  #isFactoryOnRoutes = false
  #factory // the application's childLoggerFactory if it may be Fastify's own, else null
  #plain = undefined // what the loggers have in common if text can be appended to their bindings, else null; found with the first logger

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
    // A level of Infinity: logging is off.
    if (!span.valid || log === undefined || log === null || log.levelVal === Infinity) return
    if (this.#logs !== null) this.#logs.begun(request, span)
    try {
      if (log !== this.#instanceLog && this.#isOwn(request, route) && typeof log.setBindings === 'function') this.bind(log, span)
      else if (!this.bindChild(request, reply, log, span)) return
      if (this.#logs !== null) request.log[kLoggedSpan] = span
    } catch {} // the logger is frozen or not really pino: its lines have no ids
  }

  // pino's setBindings serializes each value again. If its first call added exactly our text, without a serializer or redaction,
  // later requests append the text directly. pino exports its symbols for integrations like this.
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

  /** Gives a request a child of its logger, because other requests may share it. Returns false if the logger has no `child` method. */
  bindChild (request, reply, log, span) {
    if (typeof log.child !== 'function') return false
    const child = log.child(bindingsOf(span))
    if (reply.log === log) reply.log = child
    request.log = child
    return true
  }

  // Checked once per route: reading the factory is a dictionary look-up, and Fastify accepts no other factory once it has started.
  #isOwn ({ server, id, log }, route) {
    if (route.loggingServer === server) return true
    if (this.#isFactoryOnRoutes || server.childLoggerFactory !== this.#factory || !namesRequest(log, id)) return false
    route.loggingServer = server
    return true
  }
}

/** For `logIds: false` with exported lines: the logger gets a reference to the request's span, but its lines stay the same. */
class LogFollower extends LogCorrelation {
  bind () {}
  bindChild () { return false }
}

const FACTORY_LENGTH = 3 // of Fastify's own factory; the form in its documentation has a further parameter, the request

// Whether a logger is a child that Fastify's own factory created for this request: the request id is then its last binding. The
// factory cannot be compared instead: Fastify does not export it, and a minifier changes its name and its text.
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

// The prototype that owns a method. A method that replaces pino's has a different owner.
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
