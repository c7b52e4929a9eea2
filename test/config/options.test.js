'use strict'

const path = require('node:path')
const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')
const { MOVED: moved, OPTIONS } = require('../../lib/config/table')

const resolve = (options, environment = {}) => resolveOptions(options, environment)

const nothing = () => {}
const processor = { onStart: nothing, onEnd: nothing, forceFlush: nothing, shutdown: nothing }
const provider = { getTracer: nothing }
class CustomSampler { shouldSample () { return { decision: 2 } } }

test('without options and variables everything has its documented default', (t) => {
  const { resource, exporter, ...settings } = resolve()
  t.match(exporter, { kind: 'otlp', explicit: false, url: 'http://localhost:4318/v1/traces', compression: 'none', timeoutMs: 10000 })
  t.same(settings, {
    disabled: false,
    disabledBy: '',
    serviceName: 'light-trace',
    spanProcessors: null,
    tracerProvider: null,
    registerGlobals: true,
    sampler: { kind: 'always_on', ratio: 1, parentBased: true },
    keep: null,
    recorder: null,
    slow: { afterMs: 250 },
    maxSampledPerSecond: Infinity,
    configFile: null,
    ignore: null,
    trustIncoming: true,
    requestHeaders: [],
    responseHeaders: [],
    spanName: null,
    attributes: null,
    onStart: null,
    onEnd: null,
    store: null,
    redactQuery: [],
    omitAttributes: [],
    clientErrors: true,
    spans: { handler: false, hooks: [] },
    outbound: { http: true, undici: true, libraries: true, channels: {}, propagateTo: null, graphqlDocuments: false, fold: false },
    unrouted: false,
    codeLocation: false,
    namesOpen: false,
    logIds: true,
    exportedLogs: null,
    replyHeader: null,
    metrics: null,
    platform: null,
    baggage: [],
    inheritAttributes: [],
    blockedLoop: null,
    environmentTrace: null,
    buffer: { maxBytes: 32 * 1024 * 1024, flushDelayMs: 1000 },
    batch: { maxSpans: Infinity },
    closeTimeoutMs: 5000,
    limits: { attributes: 128, attributeValueLength: 16384, events: 128, links: 128, attributesPerEvent: 128, attributesPerLink: 128 },
    knownMethods: null,
    propagators: ['tracecontext', 'baggage'],
    logLevel: 'info',
    warnings: [],
    news: []
  })
  t.end()
})

test('each public option is accepted', (t) => {
  const taken = [
    [{ serviceName: 'shop' }, 'serviceName', 'shop'],
    [{ spanProcessors: [processor] }, 'spanProcessors', [processor]],
    [{ spanProcessors: [] }, 'spanProcessors', []],
    [{ tracerProvider: provider }, 'tracerProvider', provider],
    [{ tracerProvider: false }, 'tracerProvider', false],
    [{ registerGlobals: false }, 'registerGlobals', false],
    [{ keep: { errors: true, slow: true } }, 'keep', { errors: true, aborted: false, slow: true, asked: false, maxPerSecond: 100 }],
    [{ keep: { slow: true } }, 'keep', { errors: false, aborted: false, slow: true, asked: false, maxPerSecond: 100 }],
    [{ keep: { asked: true } }, 'keep', { errors: false, aborted: false, slow: false, asked: true, maxPerSecond: 100 }],
    [{ keep: { aborted: true, maxPerSecond: 5 } }, 'keep', { errors: false, aborted: true, slow: false, asked: false, maxPerSecond: 5 }],
    [{ keep: { errors: true, maxPerSecond: 0 } }, 'keep', null],
    [{ keep: { errors: true } }, 'keep', { errors: true, aborted: false, slow: false, asked: false, maxPerSecond: 100 }],
    [{ keep: {} }, 'keep', null],
    [{ keep: false }, 'keep', null],
    [{ slow: { afterMs: 500 } }, 'slow', { afterMs: 500 }],
    [{ slow: { afterMs: 0 } }, 'slow', { afterMs: 0 }],
    [{ slow: true }, 'slow', { afterMs: 250 }],
    [{ slow: {} }, 'slow', { afterMs: 250 }],
    [{ slow: false }, 'slow', { afterMs: Infinity }],
    [{ keep: { slow: true } }, 'slow', { afterMs: 250 }],
    [{ keep: { errors: true } }, 'slow', { afterMs: 250 }],
    [{ slow: { blockedLoop: true } }, 'slow', { afterMs: 250 }],
    [{ slow: { blockedLoop: true } }, 'blockedLoop', { afterMs: 100 }],
    [{ slow: { afterMs: Infinity, blockedLoop: { afterMs: 50 } } }, 'blockedLoop', { afterMs: 50 }],
    [{ slow: false }, 'blockedLoop', null],
    [{ keep: { recorder: true } }, 'keep', null],
    [{ keep: { recorder: true, maxPerSecond: 5 } }, 'recorder', { maxBytes: 8 * 1024 * 1024, seconds: 10, errorsPerSecond: 0, blockedLoop: false, keptPerSecond: 5 }],
    [{ keep: { errors: true, recorder: false } }, 'recorder', null],
    [{ keep: true }, 'recorder', null],
    [{ limits: { sampledPerSecond: 0.5 } }, 'maxSampledPerSecond', 0.5],
    [{ configFile: 'x.json' }, 'configFile', path.resolve('x.json')],
    [{ trustIncoming: false }, 'trustIncoming', false],
    [{ trustIncoming: nothing }, 'trustIncoming', nothing],
    [{ headers: { request: ['X-Tenant', 'x-tenant'] } }, 'requestHeaders', ['x-tenant']],
    [{ headers: { response: ['X-Cache'] } }, 'responseHeaders', ['x-cache']],
    [{ headers: { baggage: ['tenant.id'] } }, 'baggage', ['tenant.id']],
    [{ headers: { serverTiming: true } }, 'replyHeader', 'server-timing'],
    [{ headers: { serverTiming: false } }, 'replyHeader', null],
    [{ replyHeader: false }, 'replyHeader', null],
    [{ spanName: nothing }, 'spanName', nothing],
    [{ attributes: nothing }, 'attributes', nothing],
    [{ attributes: { tier: 'gold', zones: ['a'] } }, 'attributes', { tier: 'gold', zones: ['a'] }],
    [{ inheritAttributes: ['tenant.id', 'user.id', 'tenant.id'] }, 'inheritAttributes', ['tenant.id', 'user.id']],
    [{ onStart: nothing }, 'onStart', nothing],
    [{ onEnd: nothing }, 'onEnd', nothing],
    [{ store: nothing }, 'store', nothing],
    [{ store: { a: 1 } }, 'store', { a: 1 }],
    [{ spans: { handler: true, hooks: ['preHandler', 'preHandler'] } }, 'spans', { handler: true, hooks: ['preHandler'] }],
    [{ outbound: { http: false, propagateTo: nothing } }, 'outbound', { http: false, undici: true, libraries: true, channels: {}, propagateTo: nothing, graphqlDocuments: false, fold: false }],
    [{ outbound: { fold: true } }, 'outbound', { http: true, undici: true, libraries: true, channels: {}, propagateTo: null, graphqlDocuments: false, fold: { after: 10 } }],
    [{ outbound: false }, 'outbound', { http: false, undici: false, libraries: false, channels: {}, propagateTo: null, graphqlDocuments: false, fold: false }],
    [{ logs: false }, 'logIds', false],
    [{ logs: true }, 'logIds', true],
    [{ logs: { ids: false } }, 'logIds', false],
    [{ logs: { buffer: false } }, 'logIds', true],
    [{ logs: { ids: true, export: false, buffer: false } }, 'exportedLogs', null],
    [{ spans: { unrouted: true } }, 'unrouted', true],
    [{ spans: { unrouted: true } }, 'spans', { handler: false, hooks: [] }],
    [{ spans: { codeLocation: true } }, 'codeLocation', true],
    [{ spans: { clientErrors: false } }, 'clientErrors', false],
    [{ spans: false }, 'clientErrors', true],
    [{ buffer: { maxBytes: 65536 } }, 'buffer', { maxBytes: 65536, flushDelayMs: 1000 }],
    [{ buffer: { flushDelayMs: 0 } }, 'buffer', { maxBytes: 32 * 1024 * 1024, flushDelayMs: 0 }],
    [{ buffer: { closeTimeoutMs: 0 } }, 'closeTimeoutMs', 0],
    [{ buffer: { closeTimeoutMs: Infinity } }, 'closeTimeoutMs', 2 ** 31 - 1],
    [{ prefix: '/api', logLevel: 'warn', logSerializers: {} }, 'serviceName', 'light-trace'],
    [{ serviceName: undefined, exporter: undefined, sampler: undefined }, 'serviceName', 'light-trace']
  ]
  for (const [options, field, expected] of taken) t.same(resolve(options)[field], expected, Object.keys(options).join())
  t.equal(resolve({ limits: { events: 0 } }).limits.events, 0)
  t.equal(resolve({ limits: { events: 0 } }).limits.links, 128)
  t.end()
})

// Options with values that differ from their defaults, in the current form and in the previous one.
const MOVED = [
  [{ keep: { recorder: { seconds: 5 } } }, { recorder: { seconds: 5 } }],
  [{ keep: { errors: true, recorder: true } }, { keep: true, recorder: true }],
  [{ slow: { blockedLoop: { afterMs: 50 } } }, { blockedLoop: { afterMs: 50 } }],
  [{ slow: { afterMs: Infinity, blockedLoop: true } }, { slow: false, blockedLoop: true }],
  [{ headers: { request: ['X-Tenant'], response: ['x-cache'] } }, { requestHeaders: ['X-Tenant'], responseHeaders: ['x-cache'] }],
  [{ headers: { request: ['cookie'] } }, { requestHeaders: ['cookie'] }],
  [{ headers: { baggage: ['tenant.id'] } }, { baggage: ['tenant.id'] }],
  [{ headers: { serverTiming: true } }, { replyHeader: 'server-timing' }],
  [{ spans: { handler: true, unrouted: true, codeLocation: true, clientErrors: false } }, { spans: true, unrouted: true, codeLocation: true, clientErrors: false }],
  [{ buffer: { maxBytes: 65536, closeTimeoutMs: 7 } }, { buffer: { maxBytes: 65536 }, closeTimeoutMs: 7 }],
  [{ limits: { sampledPerSecond: 3 } }, { maxSampledPerSecond: 3 }]
]

test('a renamed option keeps its meaning, without a warning', (t) => {
  for (const [now, before] of MOVED) {
    const [settings, asBefore, withoutEither] = [now, before, {}].map((options) => resolve(options, { OTEL_RESOURCE_ATTRIBUTES: 'service.instance.id=1' }))
    t.same(asBefore, settings, JSON.stringify(before))
    t.notSame(settings, withoutEither)
    t.same(asBefore.warnings.filter(({ code }) => code !== 'LT_WARN_HEADER_DENIED'), [])
  }
  t.same(Object.keys(moved).sort(), [...new Set(MOVED.flatMap(([, before]) => Object.keys(before)))].filter((name) => !(name in OPTIONS)).sort(), 'each of them')
  t.equal(resolve({ closeTimeoutMs: 7, buffer: { closeTimeoutMs: 8 } }).closeTimeoutMs, 8, 'the new name wins')
  t.match(thrown(() => resolve({ closeTimeoutMs: '7' }))?.message, /^`closeTimeoutMs` must be/, 'an error uses the name that was written')
  t.match(thrown(() => resolve({ recorder: { bytes: 7 } }))?.message, /`recorder\.bytes`/)
  t.match(resolve({ requestheaders: [] }).warnings[0].message, 'use headers: { request }', 'and a suggestion the new name')
  t.end()
})

test('a channel of the user\'s own gets the documented defaults and OpenTelemetry\'s number for its kind', (t) => {
  const { channels } = resolve({ outbound: { channels: { 'my-lib:op': {}, queue: { kind: 'producer', name: 'send' }, '__proto__:x': { kind: 4 } } } }).outbound
  t.same(channels['my-lib:op'], { kind: 2, name: 'my-lib:op', attributes: null })
  t.same(channels.queue, { kind: 3, name: 'send', attributes: null })
  t.equal(channels['__proto__:x'].kind, 4)
  t.end()
})

test('an unknown option that resembles a known one throws LT_ERR_OPTION_UNKNOWN and names the known one', (t) => {
  const unknown = [
    [{ samplr: 1 }, '`samplr`', '`sampler`'],
    [{ ignorePath: [] }, '`ignorePath`', '`ignore`'],
    [{ exporter: { ulr: '' } }, '`exporter.ulr`', '`exporter.url`'],
    [{ keep: { error: true } }, '`keep.error`', '`keep.errors`'],
    [{ spans: { hook: [] } }, '`spans.hook`', '`spans.hooks`'],
    [{ outbound: { htpp: true } }, '`outbound.htpp`', '`outbound.http`'],
    [{ service: 'shop' }, '`service`', '`serviceName`'],
    [{ log: true }, '`log`', '`logs`'],
    [{ outbound: { channels: { 'a:b': { kin: 1 } } } }, '`outbound.channels.a:b.kin`', '`outbound.channels.a:b.kind`'],
    [{ buffer: { maxByte: 1 } }, '`buffer.maxByte`', '`buffer.maxBytes`'],
    [{ limits: { attribute: 1 } }, '`limits.attribute`', '`limits.attributes`'],
    [{ [`sampler${'x'.repeat(1e6)}`]: 1 }, '`samplerxxx', '`sampler`'],
    [{ 'sampler\nbreak\u001b[31m': 1 }, '`sampler break`', '`sampler`']
  ]
  for (const [options, named, nearest] of unknown) {
    const error = thrown(() => resolve(options))
    t.equal(error?.code, 'LT_ERR_OPTION_UNKNOWN')
    t.equal(error.name, 'LightTraceError')
    t.ok(error.message.includes(named), `${error.message.slice(0, 100)} names ${named}`)
    t.ok(error.message.includes(`did you mean ${nearest}`), error.message.slice(-100))
    t.ok(error.message.length < 700)
  }
  t.end()
})

test('an unknown option that resembles no known one is a warning, since others pass their flags to every plugin', (t) => {
  const strangers = { tier: 'gold', port: 3000, address: '::', prettyLogs: true, keepAlive: 1, [`${'x'.repeat(1e6)}`]: 1, 'line\nbreak\u001b[31m': 1 }
  for (const options of [...Object.entries(strangers).map(([name, value]) => ({ [name]: value })), JSON.parse('{ "__proto__": 1 }')]) {
    const { warnings } = resolve(options)
    t.same(warnings.map(({ code }) => code), ['LT_WARN_OPTION_UNKNOWN'])
    t.match(warnings[0].message, /^[\x20-\x7e]+$/)
    t.ok(warnings[0].message.length < 200)
  }
  t.same(resolve({ prefix: '/api', logLevel: 'warn', logSerializers: {} }).warnings, [], "Fastify's own options cause no warning")
  t.end()
})

test('an unknown member of an object of ours throws, even if it resembles no known one', (t) => {
  const error = thrown(() => resolve({ outbound: { fetch: true } }))
  t.equal(error?.code, 'LT_ERR_OPTION_UNKNOWN')
  t.match(error.message, 'known are http, undici')
  t.end()
})

test('enabled is the opposite of OTEL_SDK_DISABLED, and code overrides it', (t) => {
  for (const [options, variable, disabled, by] of [
    [{}, undefined, false, ''],
    [{}, 'true', true, 'OTEL_SDK_DISABLED'],
    [{}, 'false', false, ''],
    [{ enabled: undefined }, 'true', true, 'OTEL_SDK_DISABLED'],
    [{ enabled: true }, 'true', false, ''],
    [{ enabled: false }, undefined, true, 'enabled: false'],
    [{ enabled: false }, 'true', true, 'enabled: false'],
    [{ enabled: false }, 'false', true, 'enabled: false']
  ]) {
    const settings = resolve(options, { OTEL_SDK_DISABLED: variable })
    t.same([settings.disabled, settings.disabledBy], [disabled, by], JSON.stringify([options, variable]))
  }
  t.end()
})

test('`true` selects the usual settings', (t) => {
  t.same(resolve({ keep: true }).keep, { errors: true, aborted: false, slow: false, asked: false, maxPerSecond: 100 })
  t.same(resolve({ spans: true }).spans, { handler: true, hooks: [] })
  t.same(resolve({ spans: false }).spans, resolve({}).spans)
  t.same(resolve({ outbound: true }).outbound, resolve({}).outbound)
  t.end()
})

test('an exporter of the SDK is rejected, with the option that takes it', (t) => {
  class OTLPTraceExporter { export () {} }
  const error = thrown(() => resolve({ exporter: new OTLPTraceExporter() }))
  t.equal(error?.code, 'LT_ERR_OPTION_INVALID')
  t.match(error.message, 'spanProcessors: [new BatchSpanProcessor(exporter)]')
  t.end()
})

test('an invalid option throws LT_ERR_OPTION_INVALID and quotes the received value', (t) => {
  const wrong = [
    ['shop', "`options` must be an object, received 'shop'"],
    [null, 'received null'],
    [[], 'received an array'],
    [{ serviceName: '' }, "`serviceName` must be a non-empty string, received ''"],
    [{ serviceName: 5 }, 'received 5'],
    [{ serviceName: null }, 'received null'],
    [{ resource: 'a=b' }, "`resource` must be an object, received 'a=b'"],
    [{ resource: { a: {} } }, "`resource['a']` must be a string, number, boolean or an array of one of these, received an object"],
    [{ resource: { a: [1, 'x'] } }, 'received an array'],
    [{ resource: { a: NaN } }, 'received NaN'],
    [{ resource: { '': 'x' } }, '`resource` must be an object without empty names'],
    [{ exporter: 'zipkin' }, "`exporter` must be 'otlp', 'otlp/stdout', 'console', 'none' or an object with a url, received 'zipkin'"],
    [{ exporter: null }, 'received null'],
    [{ exporter: { compression: 'br' } }, "`exporter.compression` must be 'none', 'gzip' or 'zstd', received 'br'"],
    [{ exporter: { timeoutMs: -1 } }, '`exporter.timeoutMs` must be a number of milliseconds, 0 or more, received -1'],
    [{ spanProcessors: processor }, '`spanProcessors` must be an array, received an object'],
    [{ spanProcessors: [{}] }, '`spanProcessors[0]` must be a SpanProcessor with onStart() and onEnd(), received an object'],
    [{ tracerProvider: true }, 'received true'],
    [{ tracerProvider: {} }, '`tracerProvider` must be a TracerProvider with getTracer(), or false, received an object'],
    [{ enabled: 'no' }, "`enabled` must be true or false, received 'no'"],
    [{ registerGlobals: 'yes' }, "`registerGlobals` must be true or false, received 'yes'"],
    [{ keep: { slow: 500 } }, '`keep.slow` must be true or false, received 500'],
    [{ keep: 1 }, '`keep` must be true, false or an object with errors, aborted, slow, asked, maxPerSecond, recorder, received 1'],
    [{ keep: { recorder: 5 } }, '`keep.recorder` must be true, false or an object with maxBytes, seconds, errorsPerSecond, blockedLoop, received 5'],
    [{ slow: 500 }, '`slow` must be true, false or an object with afterMs, blockedLoop, received 500'],
    [{ slow: { blockedLoop: { afterMs: 5 } } }, '`slow.blockedLoop.afterMs` must be a finite number of milliseconds, 20 or more, received 5'],
    [{ slow: { afterMs: '500' } }, "`slow.afterMs` must be a number of milliseconds, 0 or more, received '500'"],
    [{ slow: { afterMs: NaN } }, 'received NaN'],
    [{ slow: { afterMs: -1 } }, 'received -1'],
    [{ limits: { sampledPerSecond: NaN } }, 'received NaN'],
    [{ configFile: '' }, '`configFile` must be'],
    [{ trustIncoming: 'no' }, "received 'no'"],
    [{ headers: true }, '`headers` must be an object with request, response, baggage, serverTiming, received true'],
    [{ headers: { request: 'x-tenant' } }, "`headers.request` must be an array, received 'x-tenant'"],
    [{ headers: { request: ['a b'] } }, "`headers.request[0]` must be the name of a header, received 'a b'"],
    [{ headers: { response: [Symbol('x')] } }, 'received a symbol'],
    [{ spanName: 'GET' }, "`spanName` must be a function, received 'GET'"],
    [{ attributes: { a: {} } }, "`attributes['a']` must be a string, number, boolean or an array of one of these, received an object"],
    [{ inheritAttributes: 'tenant.id' }, "`inheritAttributes` must be an array of keys, received 'tenant.id'"],
    [{ inheritAttributes: [''] }, '`inheritAttributes` must be an array of keys, received an array'],
    [{ omitAttributes: 'client.address' }, "`omitAttributes` must be an array, received 'client.address'"],
    ...['', '*', '.*', 'a*', 'a.*.b', 'a.**', '*.address', 5, 'service.name', 'telemetry.sdk.version'].map((key) =>
      [{ omitAttributes: ['url.query', key] }, "`omitAttributes[1]` must be a key such as 'client.address' or a prefix such as 'network.peer.*'"]),
    [{ onEnd: 1n }, 'received 1'],
    [{ store: 5 }, '`store` must be an object or a function (request) => object, received 5'],
    [{ store: [] }, 'received an array'],
    [{ spans: { hooks: ['onReady'] } }, "`spans.hooks[0]` must be 'onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse' or 'onError', received 'onReady'"],
    [{ outbound: 1 }, '`outbound` must be true, false or an object with http, undici, libraries'],
    [{ outbound: { channels: [] } }, '`outbound.channels` must be an object, received an array'],
    [{ outbound: { channels: { 'a:b': 'client' } } }, '`outbound.channels.a:b` must be an object'],
    [{ outbound: { channels: { 'a:b': { kind: 'CLIENT!' } } } }, "received 'CLIENT!'"],
    [{ outbound: { channels: { 'a:b': { kind: 'toString' } } } }, "received 'toString'"],
    [{ headers: { serverTiming: 'on' } }, "`headers.serverTiming` must be true or false, received 'on'"],
    [{ replyHeader: 'traceresponse' }, "`replyHeader` must be 'server-timing' or false, received 'traceresponse'"],
    [{ buffer: { maxBytes: 0 } }, '`buffer.maxBytes` must be a positive integer number of bytes, received 0'],
    [{ buffer: { maxBytes: Infinity } }, 'received Infinity'],
    [{ buffer: { closeTimeoutMs: NaN } }, 'received NaN'],
    [{ limits: { events: 1.5 } }, '`limits.events` must be an integer from 0 to 2147483647, received 1.5'],
    [{ limits: { links: Infinity } }, 'received Infinity'],
    [{ get serviceName () { throw new Error('no') } }, '`options` must be an object that can be read'],
    [new Proxy({}, { ownKeys () { throw new Error('no') } }), '`options` must be an object that can be read'],
    [{ exporter: { get url () { throw new Error('no') } } }, '`exporter` must be an object that can be read']
  ]
  for (const [options, message] of wrong) {
    const error = thrown(() => resolve(options))
    t.equal(error?.code, 'LT_ERR_OPTION_INVALID', message)
    t.ok(error?.message.includes(message), `${error?.message} includes ${message}`)
  }
  t.end()
})

test('options are read once, own properties only, and the settings are frozen', (t) => {
  let reads = 0
  resolve({ get serviceName () { return `read ${++reads}` } })
  t.equal(reads, 1)
  t.equal(resolve(new Proxy({ serviceName: 'shop' }, {})).serviceName, 'shop')
  t.equal(resolve(Object.assign(Object.create(null), { serviceName: 'shop' })).serviceName, 'shop')

  const hooks = ['preHandler']
  const settings = resolve({ spans: { hooks }, ignore: ['/a'] })
  hooks.push('onSend')
  t.same(settings.spans.hooks, ['preHandler'])
  const mutable = Object.values(settings).filter((value) => typeof value === 'object' && !Object.isFrozen(value))
  t.same(mutable, [])
  t.ok(Object.isFrozen(settings))
  t.end()
})

test('properties that others put on Object.prototype are neither options nor variables', (t) => {
  const pollution = {
    serviceName: 'evil',
    url: 'http://evil.example',
    kind: 'console',
    headers: { authorization: 'x' },
    sampler: 'always_off',
    errors: true,
    http: false,
    handler: true,
    ignore: ['*'],
    maxBytes: 1,
    events: 0,
    ca: 'x',
    'service.name': 'evil',
    check: () => 'evil',
    default: 'evil',
    members: {},
    resolve: () => 'evil',
    read: () => 'evil',
    variables: ['OTEL_SERVICE_NAME'],
    OTEL_SDK_DISABLED: 'true',
    OTEL_SERVICE_NAME: 'evil'
  }
  for (const [name, value] of Object.entries(pollution)) Object.defineProperty(Object.prototype, name, { value, enumerable: true, configurable: true, writable: true }) // eslint-disable-line no-extend-native
  let settings
  try {
    settings = [undefined, {}, { keep: {}, buffer: {}, limits: {}, spans: {}, outbound: {}, exporter: {} }, { exporter: 'otlp', keep: false, outbound: {} }].map((options) => resolve(options))
  } finally {
    for (const name of Object.keys(pollution)) delete Object.prototype[name]
  }
  for (const { serviceName, exporter, sampler, keep, outbound, spans, ignore, buffer, limits, disabled } of settings) {
    t.equal(serviceName, 'light-trace')
    t.equal(exporter.kind, 'otlp')
    t.equal(exporter.url, 'http://localhost:4318/v1/traces')
    t.same(Object.keys(exporter.headers), [])
    t.equal(exporter.ca, undefined)
    t.equal(sampler.kind, 'always_on')
    t.equal(keep, null)
    t.equal(outbound.http, true)
    t.equal(spans.handler, false)
    t.equal(ignore, null)
    t.equal(buffer.maxBytes, 32 * 1024 * 1024)
    t.equal(limits.events, 128)
    t.equal(disabled, false)
  }
  t.end()
})

test('a header that carries credentials is not recorded, even if an option names it', (t) => {
  const denied = [
    'x-auth-token', 'x-authentication', 'www-authenticate', 'x-goog-api-key', 'ocp-apim-subscription-key', 'x-honeycomb-team', 'x-session', 'x-passwd', 'sentry-dsn', 'x-hub-signature-256',
    'Authorization', 'proxy-authorization', 'cookie', 'Set-Cookie', 'x-api-key', 'x-amz-security-token', 'x-csrf-token', 'x-client-secret'
  ]
  const { requestHeaders, responseHeaders, warnings } = resolve({ headers: { request: [...denied, 'x-tenant'], response: ['set-cookie'] } })
  t.same(requestHeaders, ['x-tenant'])
  t.same(responseHeaders, [])
  t.equal(warnings.filter(({ code }) => code === 'LT_WARN_HEADER_DENIED').length, denied.length + 1)
  t.end()
})

test('a sampler is a name, a ratio or an object that decides, and samplers from code follow the parent', (t) => {
  const custom = new CustomSampler()
  t.equal(resolve({ sampler: custom }).sampler, custom)
  const known = [
    ['always_on', { kind: 'always_on', ratio: 1 }],
    ['always_off', { kind: 'always_off', ratio: 0 }],
    [0.25, { kind: 'ratio', ratio: 0.25 }],
    [1, { kind: 'always_on', ratio: 1 }],
    [0, { kind: 'always_off', ratio: 0 }],
    [{ perSecond: 0.5 }, { kind: 'per_second', ratio: undefined, perSecond: 0.5 }],
    [{ perSecond: 0 }, { kind: 'always_off', ratio: 0 }],
    [{ perSecond: Infinity }, { kind: 'always_on', ratio: 1 }]
  ]
  for (const [sampler, expected] of known) t.same(resolve({ sampler }).sampler, { ...expected, parentBased: true })
  for (const sampler of ['foo', 1.1, -0.1, NaN, '0.1', null, {}, nothing, true]) {
    t.throws(() => resolve({ sampler }), { code: 'LT_ERR_OPTION_INVALID', message: /`sampler` must be/ })
  }
  for (const perSecond of [-1, NaN, '50', null]) t.throws(() => resolve({ sampler: { perSecond } }), { code: 'LT_ERR_OPTION_INVALID', message: /`sampler.perSecond` must be/ })
  t.throws(() => resolve({ sampler: { persecond: 50 } }), { code: 'LT_ERR_OPTION_UNKNOWN', message: /perSecond/ })
  t.end()
})

function thrown (fn) {
  try {
    fn()
  } catch (error) {
    return error
  }
}

test('metrics are sent at most ten times a second', (t) => {
  for (const [given, taken] of [[0, 100], [99, 100], [101, 101]]) t.equal(resolve({ metrics: { intervalMs: given } }).metrics.intervalMs, taken)
  t.end()
})
