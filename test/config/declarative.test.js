'use strict'

// OTEL_CONFIG_FILE: OpenTelemetry's declarative configuration, translated to the equivalent variables.

const { test } = require('tap')
const { execFileSync } = require('node:child_process')
const { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join, parse } = require('node:path')
const { parse: parseYaml } = require('yaml')
const { readConfiguration } = require('../../lib/features/declarative-file')
const { resolveOptions } = require('../../lib/config/options')
const { namesOfVariables } = require('../../scripts/options')
const { runProgram, ROOT } = require('../support/program')

function settled (t, content, { name = 'otel.json', options = {}, environment = {} } = {}) {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  const file = join(t.testdir({ [name]: text }), name)
  const settings = resolveOptions(options, { OTEL_CONFIG_FILE: file, ...environment })
  return { ...settings, attributes: settings.resource.attributes, messages: settings.warnings.map(({ message }) => message) }
}

const WHOLE = `
file_format: "1.0"
log_level: warn2
resource:
  attributes:
    - { name: service.name, value: shop, type: string }
    - { name: team, value: "a,b=c %" }
    - { name: shards, value: 4 }
    - { name: pinned, value: "true", type: bool }
    - { name: zones, value: [a, b], type: string_array }
  attributes_list: "team=lost,region=eu"
attribute_limits: { attribute_value_length_limit: 4096, attribute_count_limit: 64 }
propagator:
  composite: [{ tracecontext: }, { b3: }]
  composite_list: "baggage,b3"
tracer_provider:
  processors:
    - batch:
        schedule_delay: 200
        max_export_batch_size: 256
        exporter:
          otlp_http:
            endpoint: https://near:4318/v1/traces
            headers: [{ name: x-tenant, value: "\${TENANT}" }]
            headers_list: "x-tenant=lost,x-zone=z"
            compression: gzip
            timeout: 3000
  limits: { event_count_limit: 7, link_count_limit: 8, event_attribute_count_limit: 9, link_attribute_count_limit: 10 }
  sampler:
    parent_based:
      root: { trace_id_ratio_based: { ratio: 0.25 } }
      remote_parent_sampled: { always_on: }
meter_provider:
  readers:
    - periodic:
        interval: 7000
        exporter: { otlp_http: { endpoint: "http://127.0.0.1:4318/m", temporality_preference: delta } }
  exemplar_filter: always_off
logger_provider:
  processors:
    - batch: { schedule_delay: 300, exporter: { otlp_http: { endpoint: "http://127.0.0.1:4318/l" } } }
instrumentation/development:
  general:
    http:
      server:
        known_methods: [GET, PURGE]
        request_captured_headers: [X-Tenant, authorization]
        response_captured_headers: [x-cache]
`

test('a complete YAML file has the effect of the equivalent variables and options', (t) => {
  const environment = { TENANT: 'a=b', OTEL_SERVICE_NAME: 'other', OTEL_TRACES_SAMPLER: 'always_off', OTEL_EXPORTER_OTLP_HEADERS: 'x=y' }
  const settings = settled(t, WHOLE, { name: 'otel.yaml', environment })
  t.match(settings, {
    disabled: false,
    serviceName: 'shop',
    logLevel: 'warn',
    sampler: { kind: 'ratio', ratio: 0.25, parentBased: true },
    propagators: ['tracecontext', 'b3', 'baggage'],
    buffer: { flushDelayMs: 200 },
    batch: { maxSpans: 256 },
    exporter: { kind: 'otlp', explicit: false, url: 'https://near:4318/v1/traces', compression: 'gzip', timeoutMs: 3000 },
    limits: { attributes: 64, attributeValueLength: 4096, events: 7, links: 8, attributesPerEvent: 9, attributesPerLink: 10 },
    metrics: { intervalMs: 7000, temporality: 'delta', exemplars: 'always_off', exporter: { url: 'http://127.0.0.1:4318/m' } },
    exportedLogs: { flushDelayMs: 300, exporter: { url: 'http://127.0.0.1:4318/l' } },
    knownMethods: ['GET', 'PURGE'],
    requestHeaders: ['x-tenant'],
    responseHeaders: ['x-cache'],
    attributes: { team: 'a,b=c %', region: 'eu', shards: 4, pinned: true, zones: ['a', 'b'] }
  })
  t.same({ ...settings.exporter.headers }, { 'x-tenant': 'a=b', 'x-zone': 'z' })
  t.same(settings.warnings.map(({ code }) => code), ['LT_WARN_HEADER_DENIED'])
  t.end()
})

test('settings that a file leaves out are off, other OTEL_* variables have no effect, and code overrides both', (t) => {
  const environment = { OTEL_TRACES_EXPORTER: 'console', OTEL_METRICS_EXPORTER: 'otlp', OTEL_LOGS_EXPORTER: 'otlp', OTEL_PROPAGATORS: 'b3' }
  t.match(settled(t, { file_format: '1.0' }, { environment }), { exporter: { kind: 'none' }, metrics: null, exportedLogs: null, propagators: [], messages: [] })
  const options = { exporter: { url: 'http://code' }, serviceName: 'code', sampler: 1, requestHeaders: ['x-code'], resource: { shards: 5 } }
  const settings = settled(t, WHOLE, { name: 'otel.yml', options })
  t.match(settings, { exporter: { url: 'http://code/v1/traces' }, serviceName: 'code', sampler: { kind: 'always_on' }, requestHeaders: ['x-code'], attributes: { shards: 5 } })
  t.end()
})

test('samplers and exporters are chosen by name', (t) => {
  const traced = (sampler, exporter = { otlp_http: {} }) => settled(t, { file_format: '1.1', tracer_provider: { processors: [{ simple: { exporter } }], sampler } })
  const samplers = [
    [{ always_on: {} }, { kind: 'always_on', parentBased: false }],
    [{ always_off: null }, { kind: 'always_off', parentBased: false }],
    [{ trace_id_ratio_based: { ratio: 0.5 } }, { kind: 'ratio', ratio: 0.5, parentBased: false }],
    [{ trace_id_ratio_based: null }, { kind: 'always_on', parentBased: false }],
    [{ 'probability/development': { ratio: 0.5 } }, { kind: 'ratio', ratio: 0.5 }],
    [{ parent_based: { root: { always_off: {} } } }, { kind: 'always_off', parentBased: true }],
    [{ parent_based: {} }, { kind: 'always_on', parentBased: true }],
    [undefined, { kind: 'always_on', parentBased: true }]
  ]
  for (const [sampler, expected] of samplers) t.match(traced(sampler), { sampler: expected, messages: [] })
  const exporters = [
    [{ otlp_http: null }, { kind: 'otlp', url: 'http://localhost:4318/v1/traces' }, []],
    [{ console: {} }, { kind: 'console' }, []],
    [{ 'otlp_file/development': { output_stream: 'stdout' } }, { kind: 'otlp/stdout' }, []],
    [{ otlp_grpc: { endpoint: 'http://near:4317' } }, { kind: 'otlp', url: 'http://near:4317/' }, ['LT_WARN_PROTOCOL']],
    [{ otlp_http: { encoding: 'json' } }, { kind: 'otlp' }, ['LT_WARN_PROTOCOL']],
    [{ 'otlp_file/development': { output_stream: 'file:///x' } }, { kind: 'none' }, ['LT_WARN_CONFIG_FILE']]
  ]
  for (const [exporter, expected, codes] of exporters) {
    const settings = traced(undefined, exporter)
    t.match(settings.exporter, expected)
    t.same(settings.warnings.map(({ code }) => code), codes, JSON.stringify(exporter))
  }
  const scraped = settled(t, { file_format: '1.0', meter_provider: { readers: [{ pull: { exporter: { 'prometheus/development': { host: '0.0.0.0', port: 9000 } } } }] } })
  t.match(scraped.metrics, { prometheus: { host: '0.0.0.0', port: 9000 }, exporter: null })
  t.end()
})

test('variables in texts are replaced as the specification requires', (t) => {
  const environment = { A: 'a', OTEL_B: 'b', EMPTY: '', SECRET: '$' + '{A}' }
  const texts = [['$' + '{A}', 'a'], ['x$' + '{env:A}-$' + '{OTEL_B}', 'xa-b'], ['$' + '{NONE:-c d}', 'c d'], ['$' + '{EMPTY:-e}', 'e'], ['$$' + '{A}', '$' + '{A}'], ['$$$$', '$$'], ['$A', '$A'], ['$' + '{SECRET}', '$' + '{A}']]
  for (const [text, expected] of texts) {
    const { attributes, messages } = settled(t, { file_format: '1.0', resource: { attributes: [{ name: 'x', value: text }] } }, { environment })
    t.equal(attributes.x, expected, text)
    t.same(messages, [])
  }
  const { attributes, disabled } = settled(t, { file_format: '1.0', disabled: '$' + '{OFF:-true}', resource: { attributes: [{ name: 'x', value: '$' + '{NONE}' }] } })
  t.equal(disabled, true)
  t.notOk('x' in attributes, 'a variable that is not set becomes nothing')
  t.end()
})

test('unsupported settings are named once, in one line, and the others apply', (t) => {
  const { messages, sampler } = settled(t, {
    file_format: '1.7',
    tracer_provider: { processors: [{ batch: { exporter: { zipkin: {} } } }, { simple: {} }], sampler: { always_off: {} }, tracer_configurator: {} },
    meter_provider: { views: [] },
    propagator: 5,
    constructor: 1
  })
  t.equal(messages.length, 1)
  for (const name of ['file_format 1.7', 'tracer_provider.processors[0].batch.exporter.zipkin', 'tracer_provider.processors[1]', 'tracer_provider.tracer_configurator', 'meter_provider.views', 'propagator', 'constructor']) {
    t.ok(messages[0].includes(name), name)
  }
  t.match(sampler, { kind: 'always_off' })
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`member${i}`, 1]))
  t.match(settled(t, { file_format: '1.0', ...many }).messages, [/ 500 of its parts: member0, .* or member9$/])
  t.end()
})

test('the first of several exporters of a signal, or of several samplers, is used, and the others are named', (t) => {
  const { messages, exporter, exportedLogs, metrics, sampler } = settled(t, {
    file_format: '1.0',
    tracer_provider: {
      processors: [{ batch: { exporter: { zipkin: {}, otlp_http: { endpoint: 'http://first:4318/x' }, console: {} } }, simple: { exporter: { otlp_http: { endpoint: 'http://second:4318/x' } } } }, { simple: { exporter: { console: {} } } }],
      sampler: { always_off: {}, always_on: {} }
    },
    logger_provider: { processors: [{ simple: { exporter: { console: {}, otlp_http: {} } } }] },
    meter_provider: { readers: [{ pull: { exporter: { 'prometheus/development': {} } }, periodic: { exporter: { otlp_http: {} } } }] }
  })
  t.match(exporter, { kind: 'otlp', url: 'http://first:4318/x' })
  t.match([exportedLogs.exporter, metrics.exporter, sampler.kind], [null, null, 'always_off'])
  t.equal(messages.length, 1)
  t.equal(messages[0].replace(/.*ignores /, ''), '7 of its parts: tracer_provider.processors[0].batch.exporter.zipkin, tracer_provider.processors[0].batch.exporter.console, tracer_provider.processors[0].simple, ' +
    'tracer_provider.processors[1], tracer_provider.sampler.always_on, logger_provider.processors[0].simple.exporter.otlp_http or meter_provider.readers[0].periodic')
  t.end()
})

test('values of a wrong type are named, wherever they are', (t) => {
  const server = { known_methods: 'GET,PUT', request_captured_headers: { a: 1 }, response_captured_headers: ['x-a', {}] }
  const content = {
    file_format: '1.0',
    log_level: 'loud',
    propagator: { composite_list: ['b3'] },
    resource: { attributes: [{ name: 'ok', value: 'x' }, { name: 'wrong', value: {} }], attributes_list: 5 },
    tracer_provider: { processors: [{ simple: { exporter: { otlp_http: { headers_list: [], encoding: {} } } } }], sampler: { trace_id_ratio_based: { ratio: [1] } } },
    'instrumentation/development': { general: { http: { server } } }
  }
  const otlp = 'tracer_provider.processors[0].simple.exporter.otlp_http'
  const http = 'instrumentation/development.general.http.server'
  const { messages, requestHeaders, responseHeaders, knownMethods } = settled(t, content)
  t.equal(messages.find((message) => message.includes('light-trace ignores')).replace(/.*ignores 9 of its parts: /, ''), ['log_level', 'propagator.composite_list', 'resource.attributes[1]', `${otlp}.headers_list`, `${otlp}.encoding`,
    'tracer_provider.sampler.trace_id_ratio_based.ratio', `${http}.known_methods`, `${http}.request_captured_headers`].join(', ') + ` or ${http}.response_captured_headers[1]`)
  t.same([requestHeaders, responseHeaders, knownMethods], [[], ['x-a'], null])
  t.end()
})

test('a file that cannot be used switches tracing off, and the warning quotes nothing from it', (t) => {
  const contents = ['{ "hunter2', '[]', '5', 'null', '{}', { file_format: '0.4' }, { file_format: '2.0' }, { file_format: 1 }, { file_format: '1.0', log_level: '$' + '{hunter2 x}' }, ' '.repeat(2 ** 20 + 1)]
  for (const content of contents) {
    const { disabled, messages, warnings } = settled(t, content)
    t.equal(disabled, true)
    t.equal(messages.length, 1)
    t.match(warnings, [{ code: 'LT_WARN_CONFIG_FILE', message: /cannot be used, so nothing is traced: / }])
    t.notMatch(messages[0], 'hunter2')
  }
  t.match(settled(t, 'a: [hunter2', { name: 'otel.yaml' }), { disabled: true, messages: [/not valid YAML$/] })
  const { disabled, warnings } = resolveOptions({}, { OTEL_CONFIG_FILE: '/nowhere/otel.json' })
  t.equal(disabled, true)
  t.match(warnings, [{ message: /ENOENT/ }])
  t.end()
})

// The other supported settings: the alternatives to each choice in WHOLE.
const OTHERS = [
  { file_format: '1.0', disabled: true, tracer_provider: { limits: { attribute_count_limit: 1, attribute_value_length_limit: 2 }, sampler: { trace_id_ratio_based: { ratio: 1 } } } },
  { file_format: '1.0', meter_provider: { readers: [{ pull: { exporter: { 'prometheus/development': { host: 'h', port: 1 } } } }] }, logger_provider: { limits: { attribute_count_limit: 1, attribute_value_length_limit: 2 } } },
  ...['TRACES', 'METRICS', 'LOGS'].map((signal) => ({ file_format: '1.0', ...providerWith(signal, { schedule_delay: 1, export_timeout: 2, max_queue_size: 3, max_export_batch_size: 4, interval: 5, timeout: 6 }) }))
]

function providerWith (signal, members) {
  const tls = { ca_file: 'a', key_file: 'k', cert_file: 'c', insecure: true }
  const exporter = { otlp_http: { endpoint: 'http://a', headers_list: 'a=b', compression: 'gzip', timeout: 1, encoding: 'protobuf', tls, temporality_preference: 'delta', default_histogram_aggregation: 'explicit_bucket_histogram' } }
  if (signal === 'METRICS') return { meter_provider: { readers: [{ periodic: { ...members, exporter } }] } }
  return { [signal === 'TRACES' ? 'tracer_provider' : 'logger_provider']: { processors: [{ batch: { ...members, exporter } }] } }
}

test('each variable that a file replaces is also read without a file', (t) => {
  const known = namesOfVariables()
  const named = new Set([parseYaml(WHOLE), ...OTHERS].flatMap((content) => {
    const { values } = readConfiguration(join(t.testdir({ 'otel.json': JSON.stringify(content) }), 'otel.json'), {})
    return Object.keys(values)
  }))
  t.same([...named].filter((name) => !known.includes(name)), [])
  t.equal(named.size, 62, 'all of them')
  t.end()
})

test('a header is sent whatever its value looks like, and its value is never shown', (t) => {
  const headers = [{ name: 'api-key', value: 1234567890 }, { name: 'x-on', value: true, type: 'bool' }, { name: 'x-list', value: ['a'] }]
  const content = { file_format: '1.0', tracer_provider: { processors: [{ batch: { exporter: { otlp_http: { endpoint: 'https://near/x', headers } } } }] } }
  const settings = settled(t, content)
  t.same({ ...settings.exporter.headers }, { 'api-key': '1234567890', 'x-on': 'true' })
  t.notOk('api-key' in settings.attributes)
  t.match(settings.messages, [/headers\[2\]$/])
  t.notMatch(JSON.stringify(settings), '1234567890')
  t.end()
})

test('attributes have the types that the file gives them', (t) => {
  const attributes = [{ name: 'a', value: 8080, type: 'string' }, { name: 'b', value: '7', type: 'int' }, { name: 'c', value: 'x', type: 'int' }, { name: 'd', value: ['$' + '{A}', 'b'] }, { name: 'e', value: [1, 2], type: 'int_array' }, { name: 'f', value: [1, 'x'] }, { name: '\ud800', value: '\ud800' }, { name: '__proto__', value: 5 }]
  const settings = settled(t, { file_format: '1.0', resource: { attributes } }, { environment: { A: 'a' } })
  t.match(settings.attributes, { a: '8080', b: 7, d: ['a', 'b'], e: [1, 2] })
  t.notOk('c' in settings.attributes || 'f' in settings.attributes)
  t.match(settings.messages, [/resource\.attributes\[2\] or resource\.attributes\[5\]/])
  t.equal({}.x, undefined)
  t.end()
})

test('the parser prints nothing from a file, and a path that is not a file does not block', async (t) => {
  const folder = t.testdir({ 'otel.yaml': 'file_format: "1.0"\nresource: { attributes: [{ name: a, value: !secret hunter2 }] }\n' })
  const program = `console.log(JSON.stringify(require(${JSON.stringify(join(ROOT, 'lib/config/options'))}).resolveOptions()))`
  const { stdout, stderr } = await runProgram(['-e', program], { OTEL_CONFIG_FILE: join(folder, 'otel.yaml') })
  t.equal(stderr, '')
  t.match(JSON.parse(stdout), { disabled: false })
  if (process.platform === 'win32') return
  const fifo = join(folder, 'fifo.json')
  execFileSync('mkfifo', [fifo])
  for (const file of [fifo, folder, '/dev/zero']) t.match(resolveOptions({}, { OTEL_CONFIG_FILE: file }), { disabled: true, warnings: [{ message: /it is no file|EISDIR/ }] })
})

test('without the package yaml in the application, a YAML file is ignored and the variables apply', async (t) => {
  const folder = t.testdir({ 'otel.yaml': 'file_format: "1.0"\ndisabled: true\n' })
  const elsewhere = mkdtempSync(join(tmpdir(), 'light-trace-no-yaml-'))
  t.teardown(() => rmSync(elsewhere, { recursive: true }))
  const { stdout, stderr } = await runProgram(['-e', `const { resolveOptions } = require(${JSON.stringify(join(ROOT, 'lib/config/options'))})
process.chdir(${JSON.stringify(elsewhere)})
console.log(JSON.stringify(resolveOptions()))`], { OTEL_CONFIG_FILE: join(folder, 'otel.yaml'), OTEL_SERVICE_NAME: 'held' })
  t.match(JSON.parse(stdout), { disabled: false, serviceName: 'held', warnings: [{ code: 'LT_WARN_CONFIG_FILE', message: /needs the package 'yaml'/ }] }, stderr)
})

test('YAML is read by the application\'s package yaml, wherever the application is started', async (t) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'light-trace-yaml-')))
  t.teardown(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(join(ROOT, 'node_modules/yaml'), join(folder, 'node_modules/yaml'), 'junction')
  writeFileSync(join(folder, 'otel.yaml'), 'file_format: "1.0"\nresource: { attributes: [{ name: service.name, value: shop }] }\n')
  const options = JSON.stringify(join(ROOT, 'lib/config/options.js'))
  writeFileSync(join(folder, 'app.cjs'), `console.log(require(${options}).resolveOptions().serviceName)`)
  writeFileSync(join(folder, 'app.mjs'), `import { createRequire } from 'node:module'\nconsole.log(createRequire(import.meta.url)(${options}).resolveOptions().serviceName)`)
  for (const name of ['app.cjs', 'app.mjs']) {
    const { stdout, stderr } = await runProgram([join(folder, name)], { OTEL_CONFIG_FILE: join(folder, 'otel.yaml') }, parse(folder).root)
    t.equal(stdout.trim(), 'shop', stderr)
  }
})

test('a byte order mark is ignored', (t) => {
  t.match(settled(t, '\ufeff{"file_format":"1.0","resource":{"attributes":[{"name":"a","value":"b"}]}}'), { attributes: { a: 'b' }, messages: [] })
  t.match(settled(t, '\ufefffile_format: "1.0"\nresource: { attributes: [{ name: a, value: b }] }\n', { name: 'otel.yaml' }), { attributes: { a: 'b' }, messages: [] })
  t.end()
})

test('the console exporter for metrics is named with its path in the file', (t) => {
  const { metrics, messages } = settled(t, { file_format: '1.0', meter_provider: { readers: [{ periodic: { exporter: { console: {} } } }] } })
  t.equal(metrics, null)
  t.same(messages.map((message) => message.replace(/.*ignores /, '')), ['meter_provider.readers[0].periodic.exporter.console'])
  t.end()
})
