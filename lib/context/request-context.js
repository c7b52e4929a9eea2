'use strict'

// `request.trace`, which is also the request's OpenTelemetry Context. It holds no request, reply or socket: later work may keep it.

const asyncStorage = require('./async-storage.js')
const { parseBaggage } = require('./baggage.js')
const { SPAN_KEY, BAGGAGE_KEY, SUPPRESS_KEY, REQUEST_KEY, SAMPLED, traceOf } = require('./trace-context.js')
const { attempt } = require('../runtime/report.js')

const inspect = Symbol.for('nodejs.util.inspect.custom')

// All fields are private: a failing deepStrictEqual of two requests would else walk through the span to the whole application.
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
   * @param {Tracer} tracer which makes children and writes headers
   * @param {Span} span of the request as the application sees it, or a twin
   * @param {Context | null} base what was active before, where another context manager is registered or a propagator is not ours
   * @param {boolean} suppressed whether children are switched off
   * @param {string | CallerHeaders | undefined} [caller] the traceparent as it came, or all: a proxy may copy them into a call
   * @param {string | null} [baggage] the header as it came, where its caller is trusted
   * @param {RequestEnd | null} [record] what ends with the response: a ServerSpan; an AdoptedServerSpan, which an instrumentation has
   *   made; with metrics a RequestRecord, where no span is recorded; null: nothing
   */
  // HOT, once per request. Budget: 1 object.
  constructor (tracer, span, base, suppressed, caller = undefined, baggage = null, record = null) {
    this.#tracer = tracer
    this.#span = span
    this.#base = base === null ? null : beneath(base)
    this.#suppressed = suppressed
    this.#caller = caller
    this.#baggage = baggage // a string until it is asked for
    this.#record = record
    this.#values = null
    this.#ending = null
  }

  get tracer () { return this.#tracer }
  get span () { return this.#span }
  get suppressed () { return this.#suppressed }
  get caller () { return this.#caller }

  /** What ends with the response, as long as it has not. */
  get record () { return this.#record }

  /** What else its end needs: see lib/fastify/response-end.js. */
  get ending () { return this.#ending }
  set ending (ending) { this.#ending = ending }

  /** Takes what ends with the response, once. HOT */
  takeRecord () {
    const record = this.#record
    this.#record = null
    return record
  }

  /** Notes what Fastify caught. Whether it is the request's error depends on the response's status. */
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

  /** Keeps `value` under `key` for the rest of the request and what it started. */
  set (key, value) {
    if (this === undefined) return detachedOwner('set').set(key, value)
    const { store } = this
    // Assigned, `__proto__` would be another object's prototype, and where prototypes are frozen `constructor` would throw.
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
   * Runs `fn(span)` in a new INTERNAL span under the running one, which ends with the function or the promise that it returns.
   * What is thrown is recorded and passed on. `options` are the API's SpanOptions.
   */
  withSpan (name, options, fn) {
    const context = this === undefined ? detachedOwner('withSpan') : this
    if (typeof options === 'function') return context.tracer.withSpan(context, name, undefined, options)
    if (typeof fn !== 'function') throw misused('withSpan(name, [options], fn) needs a function; the span ends when it returns or its promise settles')
    return context.tracer.withSpan(context, name, options, fn)
  }

  /**
   * Records an error that the application answers by itself: an `exception` event, `error.type` if the response is 4xx or
   * 5xx, and status ERROR if it is 5xx. Does nothing once the response is closed.
   */
  fail (error) {
    if (this === undefined) return detachedOwner('fail').fail(error)
    this.#record?.recordFailure(error)
  }

  /** Asks for this request to be exported whatever the sampler said, where the option `keep` is set; see docs/sampling.md. */
  keep (reason) {
    if (this === undefined) return detachedOwner('keep').keep(reason)
    this.#record?.keepFor(reason)
  }

  /** Runs `fn` with this request's context active and returns what it returns. */
  run (fn, ...args) {
    if (this === undefined) return detachedOwner('run').run(fn, ...args)
    return this.#tracer.contextManager.with(this.here(), fn, undefined, ...args)
  }

  /** A function that runs `fn` with this request's context active, from wherever it is called. */
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
    return attempt(() => this.#tracer.inject(this, carrier)) ?? carrier // frozen, or with a setter that throws: the call goes out without
  }

  /** The active context where it is this request's (it may hold a child span), else this one. */
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

/** `request.trace` of a request that is not traced yet. All such requests share it, so it keeps nothing. */
class NoRequestContext extends RequestContext {
  get store () { return {} }
}

/**
 * A context with one more value. No two of a chain have the same key: a value that another one hides would stay reachable, and a step
 * that arms its own next one (a poller, a retry) would keep all before it.
 */
class DerivedContext {
  // Private: async_hooks keeps what is active on enumerable keys of Node's own objects.
  #parent
  #key
  #value
  #span // these three at hand, without a walk: a call asks for them
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

  // HOT, some times per outgoing call.
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

  /** `context` as it would be if `key` had never been set on it: those above are made anew. */
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

/** `context`, which sets `key` only at its root, without a value there. */
function withoutValue (context, key) {
  return context.getValue(key) === undefined ? context : new DerivedContext(context, key, undefined)
}

/** What a request keeps of the context that it comes in. An earlier request's, which its own hides, would keep all before it. */
function beneath (base) {
  if (base.getValue(REQUEST_KEY) === undefined) return base
  return base.withoutRequest ?? base.deleteValue(SPAN_KEY).deleteValue(REQUEST_KEY) // the latter of another library's
}

/** The owner of a method that was taken off its object (`const { withSpan } = request.trace`): the running request's. */
function detachedOwner (method) {
  const request = asyncStorage.active()?.getValue(REQUEST_KEY)
  if (request === undefined) throw misused(`${method} was called detached and outside a request: call request.trace.${method}(...)`)
  return request
}

/** A mistake in the user's code; it would be a TypeError all the same, with a worse message. */
function misused (message) {
  /** @type {Code} */
  const code = 'LT_ERR_USAGE'
  return Object.assign(new TypeError(message), { code })
}

/** The context manager over our own AsyncLocalStorage, in the API's terms. */
const ownContextManager = { active: asyncStorage.active, with: asyncStorage.run, call: asyncStorage.call }

const EMPTY_CONTEXT = {
  getValue () { return undefined },
  setValue (key, value) { return new DerivedContext(EMPTY_CONTEXT, key, value) },
  deleteValue (_key) { return EMPTY_CONTEXT }
}

// One is always alive, see `retained` in lib/span/span-starter.js; of DerivedContext the next one is.
RequestContext.retained = new RequestContext(null, null, null, false)

// In this context nothing is traced: our own traffic to the collector runs in it.
const SUPPRESSED = EMPTY_CONTEXT.setValue(SUPPRESS_KEY, true)

/**
 * The trace headers that came with a request, which a proxy copies into its calls. Of a trusted caller the traceparent is enough,
 * as a string. This class is for the others: of an untrusted caller nothing may leave, and other formats have other headers.
 */
class CallerHeaders {
  #values = new Map()
  #fields

  /** @param {string[]} fields of a propagator that is not ours, beside the W3C headers */
  constructor (headers, fields, isTrusted) {
    this.isTrusted = isTrusted
    this.#fields = fields
    for (const name of ['traceparent', 'tracestate', 'baggage', ...fields]) {
      const value = headers[name]
      if (value !== undefined) this.#values.set(name, String(value))
    }
  }

  /** Whether the header came with the request as it stands in the call. */
  has (name, value) { return this.#values.get(name) === value }

  /** What must not leave unless it is written anew: of a trusted caller, what the propagator speaks for. */
  get names () {
    return this.isTrusted ? this.#fields.filter((name) => name !== 'baggage') : this.#values.keys()
  }
}

/** Whether a call's header is the caller's, copied. */
function isCopied (caller, name, value) {
  return caller instanceof CallerHeaders ? caller.has(name, value) : name === 'traceparent' && caller === value
}

/** Whether no header of this caller's may leave. */
function isUntrusted (caller) {
  return caller instanceof CallerHeaders && !caller.isTrusted
}

module.exports = { RequestContext, NoRequestContext, ownContextManager, SUPPRESSED, EMPTY_CONTEXT, CallerHeaders, misused, isCopied, isUntrusted }
