'use strict'

// Alone in its process: it has URL.canParse optimised, which then refuses hosts that are not ASCII on Node 20.

const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')
const { randomFrom } = require('../support/random')

// The pieces of the fuzzed values.
const PIECES = ['http://', 'https://', 'ftp:', 'localhost', ':4318', ':4317', ':99999', '/', '?', '#', '@', '%', '%zz', '%41', '%0d%0a', '%00', '%ff', '=', ',', ';', ' ', '\t', '\r\n', '\0',
  '\u001b[31m', '\u202e', '\ud800', '名前', '[::1]', '169.254.169.254', '__proto__', 'constructor', 'authorization', 'true', '0', '-1', '1e9', 'grpc', '/dev/null', '/', 'a'.repeat(300), '*', '**']

const resolve = (environment, options) => resolveOptions(options, environment)

test('the environment is read when the plugin is registered', (t) => {
  t.teardown(() => { delete process.env.OTEL_SERVICE_NAME })
  t.not(resolveOptions().serviceName, 'later')
  process.env.OTEL_SERVICE_NAME = 'later'
  t.equal(resolveOptions().serviceName, 'later')
  t.end()
})

// [variables, the resulting options]
const honoured = [
  [{ LIGHT_TRACE_SLOW_AFTER_MS: '500' }, { slow: { afterMs: 500 } }],
  [{ OTEL_SDK_DISABLED: 'true' }, { disabled: true }],
  [{ OTEL_SDK_DISABLED: 'TRUE ' }, { disabled: true }],
  [{ OTEL_SDK_DISABLED: 'false' }, { disabled: false }],
  [{ OTEL_SERVICE_NAME: 'shop' }, { serviceName: 'shop' }],
  [{ OTEL_PROPAGATORS: 'b3, tracecontext,b3' }, { propagators: ['b3', 'tracecontext'] }],
  [{ OTEL_PROPAGATORS: 'none' }, { propagators: [] }],
  [{ OTEL_PROPAGATORS: 'B3Multi' }, { propagators: ['b3multi'] }],
  [{ OTEL_TRACES_SAMPLER: 'always_on' }, { sampler: { kind: 'always_on', ratio: 1, parentBased: false } }],
  [{ OTEL_TRACES_SAMPLER: 'ALWAYS_OFF' }, { sampler: { kind: 'always_off', ratio: 0, parentBased: false } }],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' }, { sampler: { kind: 'ratio', ratio: 0.25, parentBased: false } }],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_always_on' }, { sampler: { kind: 'always_on', ratio: 1, parentBased: true } }],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, { sampler: { kind: 'always_off', ratio: 0, parentBased: true } }],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '1e-3' }, { sampler: { kind: 'ratio', ratio: 0.001, parentBased: true } }],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' }, { sampler: { kind: 'always_on', ratio: 1, parentBased: true } }],
  [{ OTEL_TRACES_SAMPLER: 'always_on', OTEL_TRACES_SAMPLER_ARG: 'unused' }, { sampler: { kind: 'always_on' } }],
  [{ OTEL_TRACES_EXPORTER: 'console' }, { exporter: { kind: 'console', explicit: false } }],
  [{ OTEL_TRACES_EXPORTER: 'None' }, { exporter: { kind: 'none' } }],
  [{ OTEL_BSP_SCHEDULE_DELAY: '250' }, { buffer: { flushDelayMs: 250 } }],
  [{ OTEL_BSP_SCHEDULE_DELAY: '99999999999' }, { buffer: { flushDelayMs: 2 ** 31 - 1 } }],
  [{ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '64' }, { batch: { maxSpans: 64 } }],
  [{ OTEL_BSP_MAX_QUEUE_SIZE: '1' }, { buffer: { maxBytes: 32 * 1024 * 1024 } }],
  [{ OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '10' }, { limits: { attributeValueLength: 10 } }],
  [{ OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '10', OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '20' }, { limits: { attributeValueLength: 20 } }],
  [{ OTEL_ATTRIBUTE_COUNT_LIMIT: '5' }, { limits: { attributes: 5, attributesPerEvent: 128 } }],
  [{ OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '0' }, { limits: { attributes: 0 } }],
  [{ OTEL_SPAN_EVENT_COUNT_LIMIT: '1', OTEL_SPAN_LINK_COUNT_LIMIT: '2' }, { limits: { events: 1, links: 2 } }],
  [{ OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT: '3', OTEL_LINK_ATTRIBUTE_COUNT_LIMIT: '4' }, { limits: { attributesPerEvent: 3, attributesPerLink: 4 } }],
  [{ OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT: '3', OTEL_SPAN_ATTRIBUTE_PER_LINK_COUNT_LIMIT: '4' }, { limits: { attributesPerEvent: 3, attributesPerLink: 4 } }],
  [{ OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT: '3', OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT: '9' }, { limits: { attributesPerEvent: 3 } }],
  [{ OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS: 'GET, PURGE,get' }, { knownMethods: ['GET', 'PURGE', 'get'] }],
  [{ OTEL_LOG_LEVEL: 'WARN' }, { logLevel: 'warn' }]
]

for (const [variables, expected] of honoured) {
  test(`${JSON.stringify(variables)} is applied without a warning`, (t) => {
    const settings = resolve(variables)
    t.match(settings, expected)
    t.same(settings.warnings, [])
    t.end()
  })
}

test('empty and blank variables count as unset', (t) => {
  const names = new Set(honoured.flatMap(([variables]) => Object.keys(variables)))
  for (const blank of ['', ' \t']) {
    const { warnings, ...settings } = resolve(Object.fromEntries([...names].map((name) => [name, blank])))
    t.same(warnings, [])
    t.match(settings, { disabled: false, propagators: ['tracecontext', 'baggage'], buffer: { flushDelayMs: 1000 }, limits: { attributes: 128 }, knownMethods: null })
  }
  t.end()
})

// P06, P08 and similar: [variables, the variable that the warning names, the resulting options]
const bad = [
  ...['abc', '-1', '1e9', '0x10', '١٠', '1.5', '+5', '9'.repeat(40), 'NaN', 'Infinity'].map((value) =>
    [{ OTEL_BSP_SCHEDULE_DELAY: value }, 'OTEL_BSP_SCHEDULE_DELAY', { buffer: { flushDelayMs: 1000 } }]),
  [{ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '0' }, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', { batch: { maxSpans: Infinity } }],
  [{ OTEL_SPAN_EVENT_COUNT_LIMIT: 'many' }, 'OTEL_SPAN_EVENT_COUNT_LIMIT', { limits: { events: 128 } }],
  [{ OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: 'many', OTEL_ATTRIBUTE_COUNT_LIMIT: '7' }, 'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', { limits: { attributes: 7 } }],
  [{ OTEL_SDK_DISABLED: '1' }, 'OTEL_SDK_DISABLED', { disabled: false }],
  [{ OTEL_TRACES_SAMPLER: 'unknown' }, 'OTEL_TRACES_SAMPLER', { sampler: { kind: 'always_on', parentBased: true } }],
  [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }, 'OTEL_TRACES_SAMPLER', { sampler: { kind: 'always_on', parentBased: true } }],
  ...['2', '-0.5', 'half', '0x1', '1,5', '.', '1e999'].map((value) =>
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: value }, 'OTEL_TRACES_SAMPLER_ARG', { sampler: { kind: 'always_on', ratio: 1 } }]),
  [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER', { exporter: { kind: 'otlp' } }],
  [{ OTEL_TRACES_EXPORTER: 'console,otlp' }, 'OTEL_TRACES_EXPORTER', { exporter: { kind: 'console' } }],
  [{ OTEL_PROPAGATORS: 'jaeger,b3' }, 'OTEL_PROPAGATORS', { propagators: ['b3'] }],
  [{ OTEL_LOG_LEVEL: 'loud' }, 'OTEL_LOG_LEVEL', { logLevel: 'info' }],
  [{ OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS: 'GET,B AD' }, 'OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS', { knownMethods: ['GET'] }],
  [{ OTEL_FASTIFY_IGNORE_PATHS: 'health' }, 'OTEL_FASTIFY_IGNORE_PATHS', { ignore: null }],
  [{ LIGHT_TRACE_SLOW_AFTER_MS: '1s' }, 'LIGHT_TRACE_SLOW_AFTER_MS', { slow: { afterMs: 250 } }]
]

for (const [variables, named, expected] of bad) {
  test(`${JSON.stringify(variables).slice(0, 90)} is logged once and ignored`, (t) => {
    const settings = resolve(variables)
    t.match(settings, expected)
    t.equal(settings.warnings.length, 1)
    t.equal(settings.warnings[0].code, 'LT_WARN_ENV')
    t.match(settings.warnings[0].message, named)
    t.end()
  })
}

test('code overrides the environment, and unused variables are not even read', (t) => {
  const environment = {
    OTEL_SERVICE_NAME: 'env',
    OTEL_TRACES_SAMPLER: 'unknown',
    OTEL_TRACES_EXPORTER: 'zipkin',
    OTEL_BSP_SCHEDULE_DELAY: 'abc',
    OTEL_SPAN_EVENT_COUNT_LIMIT: 'abc',
    OTEL_FASTIFY_IGNORE_PATHS: 'health',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'foo',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'br',
    OTEL_EXPORTER_OTLP_TIMEOUT: 'soon'
  }
  const settings = resolve(environment, {
    serviceName: 'code',
    sampler: 0.5,
    exporter: { url: 'http://127.0.0.1:1/x', compression: 'gzip', timeoutMs: 5 },
    buffer: { flushDelayMs: 7 },
    limits: { events: 3 },
    ignore: '/a'
  })
  t.match(settings, { serviceName: 'code', sampler: { ratio: 0.5 }, exporter: { kind: 'otlp', explicit: true, url: 'http://127.0.0.1:1/x', compression: 'gzip', timeoutMs: 5 }, buffer: { flushDelayMs: 7 }, limits: { events: 3 } })
  t.same(settings.warnings, [])
  t.end()
})

test('no value of any variable throws, breaks the URL or adds a line to a header', (t) => {
  const names = [
    ...new Set([...honoured, ...bad].flatMap(([variables]) => Object.keys(variables))),
    'OTEL_RESOURCE_ATTRIBUTES', 'OTEL_CONFIG_FILE',
    ...['ENDPOINT', 'PROTOCOL', 'HEADERS', 'TIMEOUT', 'COMPRESSION', 'CERTIFICATE', 'CLIENT_KEY', 'CLIENT_CERTIFICATE', 'INSECURE']
      .flatMap((suffix) => [`OTEL_EXPORTER_OTLP_${suffix}`, `OTEL_EXPORTER_OTLP_TRACES_${suffix}`])
  ]
  const random = randomFrom(20261121)
  for (let round = 0; round < 3000; round++) {
    const environment = Object.fromEntries(names.filter(() => random() < 0.3).map((name) => [name, anyText(random)]))
    const settings = resolve(environment)
    if (!URL.canParse(settings.exporter.url)) t.fail(JSON.stringify(environment))
    if (settings.warnings.some(({ message }) => message.length > 700)) t.fail(JSON.stringify(settings.warnings))
    for (const value of Object.values(settings.exporter.headers)) {
      if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) t.fail(JSON.stringify(environment))
    }
  }
  t.pass('3000 environments')
  t.end()
})

function anyText (random) {
  return Array.from({ length: Math.floor(random() * 8) }, () => PIECES[Math.floor(random() * PIECES.length)]).join('')
}

// mulberry32: small, and with the same numbers on every machine.
