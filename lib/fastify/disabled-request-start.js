'use strict'

// The start of a request where OTEL_SDK_DISABLED is set: a context, and what a caller sent handed on as it came. There is
// no route to look up, no clock to read, and nothing that ends. Where light-trace is on this file is not loaded.

const { RequestContext } = require('../context/request-context')
const { INVALID_SPAN } = require('../span/non-recording-span')
const { kSpan, kTrace } = require('./keys')
const { RequestStart } = require('./request-start')

class DisabledRequestStart extends RequestStart {
  constructor (tracer, parts) {
    super(tracer, parts, null)
    const { trustIncoming, store } = tracer.settings
    this.asksNobody = trustIncoming === true && store === null
  }

  /** Small, so that V8 inlines it as a whole. HOT, once per request where light-trace is switched off. Budget: 1 object. */
  begin (request, reply) {
    const { raw } = request
    const { headers } = raw // a getter of Node's: read once
    const { tracer } = this
    if (this.asksNobody !== true || tracer.sdkInterop !== null || headers.traceparent !== undefined || headers.baggage !== undefined) {
      return this.handOn(raw, headers, request, reply)
    }
    const context = new RequestContext(tracer, INVALID_SPAN, null, true)
    reply.raw[kSpan] = context
    request[kTrace] = context
    return context
  }

  handOn (raw, headers, request, reply) {
    const { sdkInterop } = this.tracer
    return this.beginSuppressed(raw, headers, request, reply, sdkInterop === null ? null : sdkInterop.base())
  }

  unrouted () { return null }
}

module.exports = { DisabledRequestStart }
