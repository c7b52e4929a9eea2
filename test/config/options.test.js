'use strict'

const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')

test('without options and variables everything has its documented default', (t) => {
  const settings = resolveOptions(undefined, {})
  t.match(settings, {
    disabled: false,
    exporter: { kind: 'otlp', explicit: false, url: 'http://localhost:4318/v1/traces', compression: 'none', timeoutMs: 10000 },
    spanProcessors: null,
    tracerProvider: null,
    registerGlobals: true,
    sampler: { kind: 'always_on', ratio: 1, parentBased: true },
    keep: null,
    maxSampledPerSecond: Infinity,
    ignore: null,
    trustIncoming: true,
    requestHeaders: [],
    responseHeaders: [],
    spanName: null,
    attributes: null,
    onStart: null,
    onEnd: null,
    store: null,
    spans: { handler: false, hooks: [] },
    outbound: { http: true, undici: true, libraries: true, channels: {}, propagateTo: null },
    unrouted: false,
    logs: true,
    replyHeader: null,
    buffer: { maxBytes: 32 * 1024 * 1024, flushDelayMs: 1000 },
    batch: { maxSpans: Infinity },
    closeTimeoutMs: 5000,
    limits: { attributes: 128, attributeValueLength: 16384, events: 128, links: 128, attributesPerEvent: 128, attributesPerLink: 128, keptChildren: 64 },
    knownMethods: null,
    propagators: ['tracecontext', 'baggage'],
    logLevel: 'info'
  })
  t.same(settings.warnings, [])
  t.end()
})
