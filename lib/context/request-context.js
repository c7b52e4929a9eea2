'use strict'

// `request.trace`, which is also the request's OpenTelemetry Context. It does not refer to the request, reply or socket, because work that
// outlives the request may keep it in memory.

const asyncStorage = require('./async-storage.js')
const { parseBaggage } = require('./baggage.js')
const { SPAN_KEY, BAGGAGE_KEY, SUPPRESS_KEY, REQUEST_KEY, SAMPLED, traceOf } = require('./trace-context.js')
const { attempt } = require('../runtime/report.js')

const inspect = Symbol.for('nodejs.util.inspect.custom')

// All fields are private. Otherwise a failing deepStrictEqual of two requests would walk through the span into the whole application.
class RequestContext {
  #tracer
  #span
  #base
  #suppressed
  #caller
  /** @type {string | import('./baggage').Baggage | null} */
  #baggage
  #record
  #values
  #ending

  /**
   * @param {Tracer} tracer creates children and writes headers
   * @param {Span} span the request's span as the application sees it. It may be a different object than `record`
   * @param {Context | null} base the context that was active before, if another context manager is registered or the propagator is not ours
   * @param {boolean} suppressed whether children are switched off
   * @param {string | CallerHeaders | undefined} [caller] the incoming traceparent, or all incoming trace headers. A proxy may copy them into
   *   a call
   * @param {string | null} [baggage] the incoming header, if the caller is trusted
   * @param {RequestEnd | null} [record] what ends with the response: a ServerSpan; an AdoptedServerSpan, which an instrumentation created;
   *   a RequestRecord, if metrics are on and no span is recorded; or null for nothing
   */
  // HOT, once per request. Budget: 1 object.
  constructor (tracer, span, base, suppressed, caller = undefined, baggage = null, record = null) {
    this.#tracer = tracer
    this.#span = span
    this.#base = base === null ? null : beneath(base)
    this.#suppressed = suppressed
    this.#caller = caller
    this.#baggage = baggage // a string until it is first read
    this.#record = record
    this.#values = null
    this.#ending = null
  }

  get tracer () { return this.#tracer }
  get span () { return this.#span }
  get suppressed () { return this.#suppressed }
  get caller () { return this.#caller }

  /** What ends with the response. Null after the end. */
  get record () { return this.#record }

  /** Other data that the end of the response needs, see lib/fastify/response-end.js. */
  get ending () { return this.#ending }
  set ending (ending) { this.#ending = ending }

  /** Returns the record and removes it, so that it ends only once. HOT */
  takeRecord () {
    const record = this.#record
    this.#record = null
    return record
  }

  /** Remembers an error that Fastify caught. Whether it is the request's error depends on the response's status. */
  caught (error) { this.#record?.fail(error) }

  // The API's Context

  getValue (key) {
    if (key === SPAN_KEY) return this.#span
    if (key === REQUEST_KEY) return this
    if (key === SUPPRESS_KEY && this.#suppressed) return true
    if (key === BAGGAGE_KEY && this.#baggage !== null) return this.parsedBaggage()
    return this.#base === null ? undefined : this.#base.getValue(key)
  }

  setValue (key, value) { return new DerivedContext(this, key, value) }
  deleteValue (key) { return withoutValue(this, key) }

  /** The same values without the request and its span. */
  get withoutRequest () {
    const base = this.#base ?? EMPTY_CONTEXT
    const rest = this.#suppressed ? base.setValue(SUPPRESS_KEY, true) : base
    return this.#baggage === null ? rest : rest.setValue(BAGGAGE_KEY, this.parsedBaggage())
  }

  // The request's store

  get (key) {
    if (this === undefined) return detachedOwner('get').get(key)
    const values = this.#values
    return values !== null && Object.hasOwn(values, key) ? values[key] : undefined
  }

  /** Keeps `value` under `key` for the rest of the request and for work that it started. */
  set (key, value) {
    if (this === undefined) return detachedOwner('set').set(key, value)
    const { store } = this
    // Assigning `__proto__` would change the prototype, and assigning `constructor` would throw if prototypes are frozen.
    if (key in store) Object.defineProperty(store, key, { value, writable: true, enumerable: true, configurable: true })
    else store[key] = value
  }

  /** The store itself, a plain object. */
  get store () { return (this.#values ??= {}) }

  get traceId () { return this.#span.spanContext().traceId }
  get spanId () { return this.#span.spanContext().spanId }
  get sampled () { return (this.#span.spanContext().traceFlags & SAMPLED) !== 0 }
  /** The W3C `traceparent` with the request's own span as the parent; '' without a trace. */
  get traceparent () { return traceOf(this.#span)?.traceparent ?? '' }

  toJSON () { return { traceId: this.traceId, spanId: this.spanId, sampled: this.sampled } }
  [inspect] () { return { ...this.toJSON(), store: this.store } }

  /**
   * Runs `fn(span)` in a new INTERNAL span under the active one. The span ends when the function returns or its promise settles.
   * An error is recorded and rethrown. `options` are the API's SpanOptions.
   */
  withSpan (name, options, fn) {
    const context = this === undefined ? detachedOwner('withSpan') : this
    if (typeof options === 'function') return context.tracer.withSpan(context, name, undefined, options)
    if (typeof fn !== 'function') throw misused('withSpan(name, [options], fn) needs a function; the span ends when it returns or its promise settles')
    return context.tracer.withSpan(context, name, options, fn)
  }

  /**
   * Records an error that the application handles itself: an `exception` event, `error.type` if the response is 4xx or 5xx, and status
   * ERROR if it is 5xx. Does nothing once the response is closed.
   */
  fail (error) {
    if (this === undefined) return detachedOwner('fail').fail(error)
    this.#record?.recordFailure(error)
  }

  /** With the option `keep`, asks for this request to be exported whatever the sampler decided. See docs/sampling.md. */
  keep (reason) {
    if (this === undefined) return detachedOwner('keep').keep(reason)
    this.#record?.keepFor(reason)
  }

  /** Runs `fn` with this request's context active and returns its result. */
  run (fn, ...args) {
    if (this === undefined) return detachedOwner('run').run(fn, ...args)
    return this.#tracer.contextManager.with(this.here(), fn, undefined, ...args)
  }

  /** Returns a function that runs `fn` with this request's context active, wherever it is called. */
  bind (fn) {
    if (this === undefined) return detachedOwner('bind').bind(fn)
    const { contextManager } = this.#tracer
    const context = this.here()
    return function bound (...args) {
      return contextManager.with(context, fn, this, ...args)
    }
  }

  /** Writes traceparent, tracestate and baggage into `headers`, with the active span of this request as the parent, and returns them. */
  inject (headers = {}) {
    if (this === undefined) return detachedOwner('inject').inject(headers)
    const carrier = headers === null || (typeof headers !== 'object' && typeof headers !== 'function') ? {} : headers
    return attempt(() => this.#tracer.inject(this, carrier)) ?? carrier // if headers are frozen or a setter throws, the call goes out without ours
  }

  /** The active context if it belongs to this request (it may hold a child span), else this one. */
  here () {
    const active = this.#tracer.contextManager.active()
    return active !== undefined && active.getValue(REQUEST_KEY) === this ? active : this
  }

  parsedBaggage () {
    if (typeof this.#baggage === 'string') this.#baggage = parseBaggage(this.#baggage)
    return this.#baggage
  }

  setStore (values) { this.#values = values }
}

/** `request.trace` of a request that is not traced yet. All these requests share it, so it stores no values. */
class NoRequestContext extends RequestContext {
  get store () { return {} }
}

/**
 * A context with one more value. A chain has each key only once. Otherwise hidden values would stay reachable, and a step that schedules
 * its own successor (a poller, a retry) would keep all earlier steps in memory.
 */
class DerivedContext {
  // Private fields, because async_hooks stores the active context under enumerable keys of Node's own objects.
  #parent
  #key
  #value
  #span // these three are cached, because each outgoing call reads them
  #request
  #suppressed

  constructor (parent, key, value) {
    this.#parent = parent
    this.#key = key
    this.#value = value
    this.#span = key === SPAN_KEY ? value : parent.getValue(SPAN_KEY)
    this.#request = key === REQUEST_KEY ? value : parent.getValue(REQUEST_KEY)
    this.#suppressed = key === SUPPRESS_KEY ? value : parent.getValue(SUPPRESS_KEY)
  }

  // HOT, several times per outgoing call.
  getValue (key) {
    if (key === SPAN_KEY) return this.#span
    if (key === REQUEST_KEY) return this.#request
    if (key === SUPPRESS_KEY) return this.#suppressed
    /** @type {Context} */
    let context = this
    while (context instanceof DerivedContext) {
      if (context.#key === key) return context.#value
      context = context.#parent
    }
    return context.getValue(key)
  }

  // HOT, once per span in a span.
  setValue (key, value) { return new DerivedContext(this.#key === key ? this.#parent : DerivedContext.#unset(this, key), key, value) }
  deleteValue (key) { return withoutValue(DerivedContext.#unset(this, key), key) }

  /** `context` as if `key` had never been set on it. The contexts above the one with `key` are created again. */
  static #unset (context, key) {
    /** @type {Context} */
    let at = context
    while (at instanceof DerivedContext && at.#key !== key) at = at.#parent
    if (!(at instanceof DerivedContext)) return context
    let rest = at.#parent
    for (let above = context; above !== at; above = above.#parent) rest = new DerivedContext(rest, above.#key, above.#value)
    return rest
  }

  /** The same values without the request and its span. */
  get withoutRequest () {
    /** @type {Context} */
    let root = this
    while (root instanceof DerivedContext) root = root.#parent
    let rest = root instanceof RequestContext ? root.withoutRequest : root
    /** @type {Context} */
    let at = this
    for (; at instanceof DerivedContext; at = at.#parent) {
      if (at.#key !== SPAN_KEY && at.#key !== REQUEST_KEY) rest = rest.setValue(at.#key, at.#value)
    }
    return rest
  }
}

/** `context` without a value for `key`. No DerivedContext in its chain may set `key`; only the root may. */
function withoutValue (context, key) {
  return context.getValue(key) === undefined ? context : new DerivedContext(context, key, undefined)
}

/** What a request keeps of the context in which it arrives. It drops an earlier request, which would keep all requests before it in memory. */
function beneath (base) {
  if (base.getValue(REQUEST_KEY) === undefined) return base
  return base.withoutRequest ?? base.deleteValue(SPAN_KEY).deleteValue(REQUEST_KEY) // the right side is for another library's context
}

/** The `this` for a method that was detached from its object (`const { withSpan } = request.trace`): the active request's. */
function detachedOwner (method) {
  const request = asyncStorage.active()?.getValue(REQUEST_KEY)
  if (request === undefined) throw misused(`${method} was called detached and outside a request: call request.trace.${method}(...)`)
  return request
}

/** An error for a mistake in the user's code. It would be a TypeError without us too, but with a worse message. */
function misused (message) {
  /** @type {Code} */
  const code = 'LT_ERR_USAGE'
  return Object.assign(new TypeError(message), { code })
}

/** The API's context manager over our own AsyncLocalStorage. */
const ownContextManager = { active: asyncStorage.active, with: asyncStorage.run, call: asyncStorage.call }

const EMPTY_CONTEXT = {
  getValue () { return undefined },
  setValue (key, value) { return new DerivedContext(EMPTY_CONTEXT, key, value) },
  deleteValue (_key) { return EMPTY_CONTEXT }
}

// Keeps one object of the class alive, see `closed` in lib/span/span-starter.js. For DerivedContext, SUPPRESSED does this.
RequestContext.retained = new RequestContext(null, null, null, false)

// In this context nothing is traced. Our own traffic to the collector runs in it.
const SUPPRESSED = EMPTY_CONTEXT.setValue(SUPPRESS_KEY, true)

/**
 * The trace headers that came with a request. A proxy may copy them into its calls. For a trusted caller with W3C headers, the traceparent
 * as a string is enough. This class is for the other cases: no header of an untrusted caller may leave, and other formats use other headers.
 */
class CallerHeaders {
  #values = new Map()
  #fields

  /** @param {string[]} fields of a propagator that is not ours, in addition to the W3C headers */
  constructor (headers, fields, isTrusted) {
    this.isTrusted = isTrusted
    this.#fields = fields
    for (const name of ['traceparent', 'tracestate', 'baggage', ...fields]) {
      const value = headers[name]
      if (value !== undefined) this.#values.set(name, String(value))
    }
  }

  /** Whether the request had this header with this value. */
  has (name, value) { return this.#values.get(name) === value }

  /** The headers that must not leave unless they are written again. For a trusted caller, only the fields of the propagator. */
  get names () {
    return this.isTrusted ? this.#fields.filter((name) => name !== 'baggage') : this.#values.keys()
  }
}

/** Whether a call's header is a copy of the caller's. */
function isCopied (caller, name, value) {
  return caller instanceof CallerHeaders ? caller.has(name, value) : name === 'traceparent' && caller === value
}

/** Whether none of this caller's headers may leave. */
function isUntrusted (caller) {
  return caller instanceof CallerHeaders && !caller.isTrusted
}

module.exports = { RequestContext, NoRequestContext, ownContextManager, SUPPRESSED, EMPTY_CONTEXT, CallerHeaders, misused, isCopied, isUntrusted }
