'use strict'

// What the user's options add to a request's span. All of it is their code: it may throw, or return a
// promise, and the request goes on as if it had not been there. Logged once, counted.

const { cleanTracestate } = require('../context/tracestate')
const { parseTraceparent } = require('../context/traceparent')
const { TraceContext } = require('../context/trace-context')
const { SERVER_KEYS } = require('../span/http-info')
const { exceptionAttributes } = require('../span/exception')
const { setOwn } = require('../span/any-value')

const MESSAGE_LENGTH_MAX = 256
// Whoever calls writes it.
const BAGGAGE_VALUE_LENGTH_MAX = 256

class Callbacks {
  #settings
  #report
  #tracer
  #writeReplyHeader

  constructor (tracer, any) {
    const { settings, report } = tracer
    this.#settings = settings
    this.#report = report
    this.#tracer = tracer
    this.anyAtEnd = settings.onEnd !== null || settings.responseHeaders.length > 0
    this.any = any
    // Few ask for it.
    this.#writeReplyHeader = settings.replyHeader === 'server-timing' ? require('./server-timing').startServerTiming : writeTraceresponse
    this.failures = 0
  }

  /** Whether `trustIncoming` lets this caller continue its trace. */
  trusts (request) {
    const { trustIncoming } = this.#settings
    if (typeof trustIncoming !== 'function') return trustIncoming
    return Boolean(this.#call('trustIncoming', () => trustIncoming(request)))
  }

  ignores (ignore, request) {
    return this.#call('ignore', () => ignore(request)) === true
  }

  /**
   * What a Sampler is asked with beyond our own attributes: what `#setNameAndAttributes` would set later. The functions
   * run here once, before there is a span.
   * @returns {object}
   */
  attributesAtStart (request, route) {
    const { attributes, requestHeaders } = this.#settings
    const all = {}
    const add = (fn) => Object.assign(all, this.#call('attributes', () => copyOf(fn(request))))
    if (attributes !== null) add(attributes)
    for (let i = 0; i < route.attributeList.length; i += 2) setOwn(all, route.attributeList[i], route.attributeList[i + 1])
    if (typeof route.options?.attributes === 'function') add(route.options.attributes)
    forEachHeader(requestHeaders, (name) => request.raw.headers[name], (name, values) => { all[`http.request.header.${name}`] = values })
    return all
  }

  started (span, context, request, route, incoming, response) {
    const { onStart, store, replyHeader } = this.#settings
    if (store !== null) this.fillStore(context, request)
    // In SDK mode the span is somebody else's too.
    if (span.isRecording()) this.#call('attributes', () => this.#setNameAndAttributes(span, context, request, route, incoming))
    if (onStart !== null) this.#call('onStart', () => onStart(span, request), true)
    if (replyHeader !== null && context.traceparent !== '' && !response.headersSent) this.#writeReplyHeader(response, context.traceparent)
  }

  ending (span, reply) {
    const { responseHeaders, onEnd } = this.#settings
    const { raw } = reply
    if (responseHeaders.length > 0 && raw.headersSent && span.isRecording()) {
      this.#call('responseHeaders', () => captureHeaders(span, 'http.response.header.', responseHeaders, (name) => raw.getHeader(name) ?? reply.getHeader(name)))
    }
    if (onEnd !== null) this.#call('onEnd', () => onEnd(span, reply.request, reply), true)
  }

  /** The store's defaults: also for requests that have no span. */
  fillStore (context, request) {
    const { store } = this.#settings
    if (store === null) return
    const values = typeof store === 'function' ? this.#call('store', () => store(request)) : store
    // A copy, and what a getter of the user's throws is the user's.
    context.setStore(this.#call('store', () => typeof values === 'object' ? { ...values } : {}) ?? {})
  }

  #setNameAndAttributes (span, context, request, route, incoming) {
    const { invocation } = this.#tracer
    if (invocation !== null) span.setAttributes(invocation)
    if (this.#settings.baggage.length > 0) this.#setBaggage(span, context.parsedBaggage(), route, incoming)
    this.#name(span, route.options?.spanName ?? this.#settings.spanName, request)
    if (incoming.attributes === null) this.#setAttributes(span, request, route)
    if (!incoming.isTrusted) this.#linkUntrusted(span, request)
  }

  /** First of all, and over nobody's own: a caller says what the application does not. */
  #setBaggage (span, baggage, route, incoming) {
    if (baggage === null) return
    for (const key of this.#settings.baggage) {
      if (SERVER_KEYS.has(key) || route.attributeList.includes(key) || (incoming.attributes !== null && key in incoming.attributes)) continue
      const entry = baggage.getEntry(key)
      if (entry !== undefined) span.setAttribute(key, entry.value.slice(0, BAGGAGE_VALUE_LENGTH_MAX))
    }
  }

  #setAttributes (span, request, route) {
    const { attributes, requestHeaders } = this.#settings
    if (attributes !== null) {
      this.#attributes(span, attributes, request)
      // The route's own are part of its template; what all routes get must not hide them.
      const list = route.attributeList
      for (let i = 0; i < list.length; i += 2) span.setAttribute(list[i], list[i + 1])
    }
    if (typeof route.options?.attributes === 'function') this.#attributes(span, route.options.attributes, request)
    captureHeaders(span, 'http.request.header.', requestHeaders, (name) => request.raw.headers[name])
  }

  #name (span, spanName, request) {
    const name = typeof spanName === 'function' ? this.#call('spanName', () => spanName(request)) : spanName
    if (typeof name === 'string' && name !== '') span.updateName(name)
  }

  #attributes (span, attributes, request) {
    const given = this.#call('attributes', () => attributes(request))
    if (given !== undefined) span.setAttributes(given)
  }

  /** A caller that is not trusted starts nothing here, but may be found: its span is linked. */
  #linkUntrusted (span, request) {
    const { traceparent, tracestate } = request.raw.headers
    if (traceparent === undefined) return
    const caller = new TraceContext()
    if (!parseTraceparent(traceparent, caller)) return
    caller.s0 = caller.p0
    caller.s1 = caller.p1
    caller.tracestate = cleanTracestate(tracestate)
    span.addLink({ context: { ...caller.spanContext(), isRemote: true } })
  }

  /** What the user's function answers; undefined where it fails, or answers with a promise. */
  #call (name, fn, isAsyncAllowed = false) {
    try {
      const result = fn()
      if (result === null || typeof result !== 'object' || typeof result.then !== 'function') return result
      result.then(undefined, (error) => this.#failed(name, error))
      if (!isAsyncAllowed) throw new TypeError('it must answer at once, it returned a promise')
    } catch (error) {
      this.#failed(name, error)
    }
    return undefined
  }

  #failed (name, error) {
    this.failures++
    const [, type, , message] = exceptionAttributes(error, MESSAGE_LENGTH_MAX)
    this.#report.once('LT_WARN_CALLBACK', `the option ${name} failed; requests go on without it: ${message ?? type}`)
  }
}

function captureHeaders (span, prefix, names, read) {
  forEachHeader(names, read, (name, values) => span.setAttribute(prefix + name, values))
}

function forEachHeader (names, read, fn) {
  for (const name of names) {
    const value = read(name)
    const values = (Array.isArray(value) ? value : [value]).filter(isHeaderValue).map(String)
    if (values.length > 0) fn(name, values)
  }
}

/** A promise stays one, to be refused as it is everywhere. */
function copyOf (given) {
  return typeof given?.then === 'function' ? given : { ...given }
}

// What a reply was given may be anything, with a toString of its own.
function isHeaderValue (value) {
  return typeof value === 'string' || typeof value === 'number'
}

function writeTraceresponse (response, traceparent) {
  response.setHeader('traceresponse', traceparent)
}

module.exports = { Callbacks }
