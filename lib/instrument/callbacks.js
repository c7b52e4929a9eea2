'use strict'

// What the user's options add to a request's span. All of it is their code: it may throw, or return a
// promise, and the request goes on as if it had not been there. Told once, counted.

const { cleanTracestate } = require('../context/tracestate')
const { parseTraceparent } = require('../context/traceparent')
const { TraceContext } = require('../context/trace-context')

class Callbacks {
  #settings
  #report

  constructor (settings, report) {
    this.#settings = settings
    this.#report = report
    this.anyAtEnd = settings.onEnd !== null || settings.responseHeaders.length > 0
    this.any = this.anyAtEnd || settings.spanName !== null || settings.attributes !== null || settings.onStart !== null ||
      settings.requestHeaders.length > 0 || settings.store !== null || settings.replyHeader !== null || settings.trustIncoming !== true
    this.failures = 0
  }

  /** Whether `trustIncoming` lets this caller continue its trace. */
  trusts (request) {
    const { trustIncoming } = this.#settings
    if (typeof trustIncoming !== 'function') return trustIncoming
    return this.#call('trustIncoming', () => trustIncoming(request)) === true
  }

  ignores (ignore, request) {
    return this.#call('ignore', () => ignore(request)) === true
  }

  started (span, context, request, route) {
    const { spanName, attributes, onStart, requestHeaders, store, replyHeader } = this.#settings
    if (store !== null) context.setStore(this.#storeValues(store, request))
    if (span.isRecording()) {
      this.#name(span, route.options?.spanName ?? spanName, request)
      this.#attributes(span, attributes, request)
      if (typeof route.options?.attributes === 'function') this.#attributes(span, route.options.attributes, request)
      captureHeaders(span, 'http.request.header.', requestHeaders, (name) => request.raw.headers[name])
      this.#linkUntrusted(span, request)
    }
    if (onStart !== null) this.#call('onStart', () => onStart(span, request))
    if (replyHeader !== null && context.traceparent !== '') writeReplyHeader(request, context, replyHeader)
  }

  ending (span, reply) {
    const { responseHeaders, onEnd } = this.#settings
    captureHeaders(span, 'http.response.header.', responseHeaders, (name) => reply.raw.getHeader(name) ?? reply.getHeader(name))
    if (onEnd !== null) this.#call('onEnd', () => onEnd(span, reply.request, reply))
  }

  #storeValues (store, request) {
    const values = typeof store === 'function' ? this.#call('store', () => store(request)) : store
    return values !== null && typeof values === 'object' ? { ...values } : {}
  }

  #name (span, spanName, request) {
    const name = typeof spanName === 'function' ? this.#call('spanName', () => spanName(request)) : spanName
    if (typeof name === 'string' && name !== '') span.updateName(name)
  }

  #attributes (span, attributes, request) {
    const given = attributes === null ? undefined : this.#call('attributes', () => attributes(request))
    if (given !== undefined) span.setAttributes(given)
  }

  /** A caller that is not trusted starts nothing here, but may be found: its span is linked. */
  #linkUntrusted (span, request) {
    const { traceparent, tracestate } = request.raw.headers
    if (this.#settings.trustIncoming === true || traceparent === undefined || span.parentKind !== 0) return
    const caller = new TraceContext()
    if (!parseTraceparent(traceparent, caller)) return
    caller.s0 = caller.p0
    caller.s1 = caller.p1
    caller.tracestate = cleanTracestate(tracestate)
    span.addLink({ context: { ...caller.spanContext(), isRemote: true } })
  }

  #call (name, fn) {
    try {
      const result = fn()
      if (result !== null && typeof result === 'object' && typeof result.then === 'function') {
        result.then(undefined, (error) => this.#failed(name, error))
        return undefined
      }
      return result
    } catch (error) {
      this.#failed(name, error)
      return undefined
    }
  }

  #failed (name, error) {
    this.failures++
    this.#report.once('LT_WARN_CALLBACK', `the option ${name} failed; requests go on without it: ${error?.message}`)
  }
}

function captureHeaders (span, prefix, names, read) {
  for (const name of names) {
    const value = read(name)
    if (value !== undefined) span.setAttribute(prefix + name, Array.isArray(value) ? value.map(String) : [String(value)])
  }
}

function writeReplyHeader (request, context, replyHeader) {
  const { traceparent } = context
  const response = context.span.reply?.raw
  if (response === undefined || response.headersSent) return
  if (replyHeader === 'traceresponse') response.setHeader('traceresponse', traceparent)
  else response.setHeader('server-timing', `traceparent;desc="${traceparent}"`)
}

module.exports = { Callbacks }
