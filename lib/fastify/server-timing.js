'use strict'

// `replyHeader: 'server-timing'`: the trace's id as a metric of Server-Timing, which a page's own script can read.
//
//   Server-Timing: db;dur=53, trace;desc=00-<trace id>-<span id>-<flags>, traceparent;desc="00-…"
//                  the app's  W3C Trace Context level 3                   what browsers' agents read today
//
// The header is set at once, for answers that go past Fastify, and again when Fastify sends, because the application may
// have set its own meanwhile, on the reply or on the raw response. https://www.w3.org/TR/server-timing/

const kTiming = Symbol('light-trace.server-timing')

const NAME = 'server-timing'

/** At the start of a request. */
function startServerTiming (response, traceparent) {
  const metrics = `trace;desc=${traceparent}, traceparent;desc="${traceparent}"`
  response[kTiming] = metrics
  response.setHeader(NAME, join(response.getHeader(NAME), metrics))
}

/** As a hook of the application and of each route: a route's run after all others. */
function lightTraceOnSend (request, reply, payload, done) {
  const metrics = reply.raw[kTiming]
  if (metrics !== undefined && !reply.raw.headersSent) {
    const value = reply.getHeader(NAME)
    if (!textOf(value).includes(metrics)) reply.header(NAME, join(value, metrics))
  }
  done()
}

/** Adds the hooks. */
function appendServerTiming (app) {
  app.addHook('onSend', lightTraceOnSend)
  app.addHook('onRoute', function lightTraceOnRoute (options) {
    options.onSend = [...[options.onSend ?? []].flat(), lightTraceOnSend]
  })
}

function join (value, metrics) {
  const text = textOf(value)
  return text === '' ? metrics : `${text}, ${metrics}`
}

// The application's: a string, or several.
function textOf (value) {
  const values = Array.isArray(value) ? value : [value]
  return values.filter((item) => typeof item === 'string' && item !== '').join(', ')
}

module.exports = { startServerTiming, appendServerTiming }
