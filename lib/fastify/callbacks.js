'use strict'

// Adds what the user's options ask for to a request's span. If a user's function fails, the request continues and the first failure is
// logged.

const { SERVER_KEYS, attributesPerRequest } = require('../span/http-info.js')
const { remoteSpanOf } = require('../span/child-span.js')
const { hasKey, setOwn } = require('../span/attributes.js')
const { atOnce } = require('../runtime/report.js')
const { hasHead } = require('./response-end.js')
const { ownHook } = require('./keys.js')

const BAGGAGE_VALUE_LENGTH_MAX = 256 // callers choose the value

class Callbacks {
  #settings
  #attributes
  /** @type {Tracer} */ #tracer

  constructor (tracer) {
    const { settings } = tracer
    this.#settings = settings
    this.#tracer = tracer
    this.anyAtEnd = settings.onEnd !== null || settings.responseHeaders.length > 0
    this.#attributes = attributesPerRequest(settings.attributes)
    this.any = this.#attributes !== null || asksUser(settings)
  }

  /** Whether `trustIncoming` lets this caller continue its trace. */
  trusts (request) {
    const { trustIncoming } = this.#settings
    if (typeof trustIncoming !== 'function') return trustIncoming
    return Boolean(this.#call('trustIncoming', () => trustIncoming(request)))
  }

  ignores (ignore, request) { return this.#call('ignore', () => ignore(request)) === true }

  /** The attributes of the user's functions, for a Sampler that decides before the span exists. The functions run only once. */
  attributesAtStart (request, route) {
    const all = {}
    this.#setAttributes({
      setAttribute: (key, value) => setOwn(all, key, value),
      setAttributes: (given) => this.#call('attributes', () => Object.assign(all, { ...given }))
    }, request, route)
    return all
  }

  started (span, context, request, route, incoming, response) {
    const { onStart, store, replyHeader } = this.#settings
    if (store !== null) this.fillStore(context, request)
    const guarded = this.#tracer.guarded(span)
    if (guarded.isRecording()) this.#call('attributes', () => this.#setNameAndAttributes(guarded, context, request, route, incoming))
    if (onStart !== null) this.#call('onStart', () => onStart(span, request), true)
    if (replyHeader !== null && context.traceparent !== '' && !hasHead(response)) startServerTiming(response, context.traceparent)
  }

  ending (span, reply) {
    const { responseHeaders, onEnd } = this.#settings
    const { raw } = reply
    const guarded = this.#tracer.guarded(span)
    if (responseHeaders.length > 0 && hasHead(raw) && guarded.isRecording()) {
      const read = (name) => raw.getHeader(name) ?? reply.getHeader(name)
      this.#call('responseHeaders', () => captureHeaders(guarded, 'http.response.header.', responseHeaders, this.#tracer.redactor, read))
    }
    if (onEnd !== null) this.#call('onEnd', () => onEnd(span, reply.request, reply), true)
  }

  /** Sets the store's defaults, even for requests without a span. */
  fillStore (context, request) {
    const { store } = this.#settings
    if (store === null) return
    const values = typeof store === 'function' ? this.#call('store', () => store(request)) : store
    // Copying reads the user's getters, which may throw.
    context.setStore(this.#call('store', () => typeof values === 'object' ? { ...values } : {}) ?? {})
  }

  #setNameAndAttributes (span, context, request, route, incoming) {
    const { invocations } = this.#tracer
    if (invocations !== null) span.setAttributes(invocations.getStore() ?? {})
    if (this.#settings.baggage.length > 0) this.#setBaggage(span, context.parsedBaggage(), route, incoming)
    const spanName = route.options?.spanName ?? this.#settings.spanName
    const name = typeof spanName === 'function' ? this.#call('spanName', () => spanName(request)) : spanName
    if (typeof name === 'string' && name !== '') span.updateName(name)
    if (incoming.attributes === null) this.#setAttributes(span, request, route)
    const caller = incoming.isTrusted ? null : remoteSpanOf(request.raw.headers)
    if (caller !== null) span.addLink({ context: caller.spanContext() }) // an untrusted caller's trace is linked, not continued
  }

  /** Sets baggage entries as attributes. They are set first and never replace the application's own, because callers choose them. */
  #setBaggage (span, baggage, route, incoming) {
    if (baggage === null) return
    for (const key of this.#settings.baggage) {
      if (SERVER_KEYS.has(key) || hasKey(route.attributeList, key) || (incoming.attributes !== null && key in incoming.attributes)) continue
      const entry = baggage.getEntry(key)
      if (entry !== undefined) span.setAttribute(key, entry.value.slice(0, BAGGAGE_VALUE_LENGTH_MAX))
    }
  }

  #setAttributes (span, request, route) {
    const { requestHeaders } = this.#settings
    if (this.#attributes !== null) {
      this.#addAttributes(span, this.#attributes, request)
      // The route's own attributes, already checked, replace those of the function for all routes.
      const list = route.attributeList
      for (let i = 0; i < list.length; i += 2) span.setAttribute(list[i], list[i + 1])
    }
    if (typeof route.options?.attributes === 'function') this.#addAttributes(span, route.options.attributes, request, 'config.trace.attributes')
    if (requestHeaders.length > 0) captureHeaders(span, 'http.request.header.', requestHeaders, this.#tracer.redactor, (name) => request.raw.headers[name])
  }

  #addAttributes (span, fn, request, name = 'attributes') {
    const given = this.#call(name, () => fn(request))
    if (given !== undefined) span.setAttributes(given)
  }

  /** Returns the result of the user's function; undefined if it fails or returns a promise. */
  #call (name, fn, isAsyncAllowed = false) {
    try {
      const result = fn()
      if (!isAsyncAllowed) return atOnce(result)
      if (typeof result?.then === 'function') result.then(undefined, (error) => this.#failed(name, error))
    } catch (error) {
      this.#failed(name, error)
    }
    return undefined
  }

  #failed (name, error) {
    this.#tracer.report.failed('LT_WARN_CALLBACK', `the function of the option ${name} failed, and requests go on without it`, error)
  }
}

/** Whether options other than `attributes` affect every request. */
function asksUser ({ onEnd, onStart, responseHeaders, requestHeaders, spanName, store, replyHeader, trustIncoming, platform, baggage }) {
  return onEnd !== null || onStart !== null || responseHeaders.length > 0 || requestHeaders.length > 0 || spanName !== null ||
    store !== null || replyHeader !== null || trustIncoming !== true || platform === 'lambda' || baggage.length > 0
}

/** Sets the given headers as attributes. A reply's header may have a value of any type, so only strings and numbers are used. */
function captureHeaders (span, prefix, names, redactor, read) {
  for (const name of names) {
    const values = [read(name)].flat().filter((value) => typeof value === 'string' || typeof value === 'number')
      .map((value) => redactor.redactHeader(String(value)))
    if (values.length > 0) span.setAttribute(prefix + name, values)
  }
}

// `headers: { serverTiming: true }`: sends the trace's id as metrics of Server-Timing. `trace` is defined by W3C Trace Context level 3;
// `traceparent` is what browser agents read today. The header is set at once, for responses that bypass Fastify, and again when
// Fastify sends, because the application may have set its own. https://www.w3.org/TR/server-timing/

const SERVER_TIMING = 'server-timing'
const kTiming = Symbol('light-trace.server-timing')

function startServerTiming (response, traceparent) {
  const metrics = `trace;desc=${traceparent}, traceparent;desc="${traceparent}"`
  response[kTiming] = metrics
  response.setHeader(SERVER_TIMING, listOf(response.getHeader(SERVER_TIMING), metrics))
}

/** Sets the header when Fastify sends: adds an onSend hook to Fastify's own object for the route, after all its other hooks. */
function appendServerTiming (hooks) {
  hooks.onSend = [...hooks.onSend ?? [], ownHook(lightTraceOnSend)]
}

function lightTraceOnSend (request, reply, payload, done) {
  const metrics = reply.raw[kTiming]
  if (metrics !== undefined && !hasHead(reply.raw)) {
    const value = reply.getHeader(SERVER_TIMING)
    if (!listOf(value).includes(metrics)) reply.header(SERVER_TIMING, listOf(value, metrics))
  }
  done()
}

/** Joins header values into one list. The application's value may be a string or an array. */
function listOf (...values) {
  return values.flat().filter((item) => typeof item === 'string' && item !== '').join(', ')
}

module.exports = { appendServerTiming, Callbacks }
