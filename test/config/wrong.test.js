'use strict'

// Common mistakes in options, one per row, with the fix that the message must name.

const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')

function said (options) {
  try {
    return resolveOptions(options, {}).warnings.map(({ code, message }) => `${code} ${message}`).join()
  } catch ({ code, message }) {
    return `${code} ${message}`
  }
}

for (const [options, fix] of [
  [{ endpoint: 'http://localhost:4318' }, 'exporter: { url'],
  [{ url: 'http://localhost:4318' }, 'exporter: { url'],
  [{ collectorUrl: 'http://localhost:4318' }, 'exporter: { url'],
  [{ exporter: { endpoint: 'http://localhost:4318' } }, 'known are url'],
  [{ exporter: { url: 'localhost:4318' } }, 'with http: or https:'],
  [{ exporter: 'http://localhost:4318' }, 'an object with a url'],
  [{ headers: { 'x-api-key': 'k' } }, '`exporter.headers`'],
  [{ requestheaders: ['x-tenant'] }, 'headers: { request }'],
  [{ propagateToReply: true }, 'headers: { serverTiming: true }'],
  [{ exporter: { headers: 'x-api-key=k' } }, 'an object'],
  [{ compression: 'gzip' }, 'exporter: { headers, compression'],
  [{ disabled: true }, 'enabled: false'],
  [{ enable: false }, 'enabled'],
  [{ sampling: 0.1 }, 'sampler: 0.1'],
  [{ sampleRate: 0.1 }, 'sampler: 0.1'],
  [{ tracesSampleRate: 0.1 }, 'sampler: 0.1'],
  [{ sampler: '0.1' }, 'a ratio from 0 to 1'],
  [{ sampler: 10 }, 'a ratio from 0 to 1'],
  [{ sampler: { ratio: 0.1 } }, 'known are perSecond'],
  [{ perSecond: 5 }, 'sampler: { perSecond'],
  [{ name: 'shop' }, 'serviceName'],
  [{ service: 'shop' }, 'serviceName'],
  [{ serviceVersion: '1.2.3' }, 'resource: {'],
  [{ environment: 'production' }, 'deployment.environment.name'],
  [{ keep: 'errors' }, 'true, false or an object with errors, aborted, slow, asked, maxPerSecond, recorder'],
  [{ keep: ['errors'] }, 'true, false or an object with errors, aborted, slow, asked, maxPerSecond, recorder'],
  [{ keepErrors: true }, 'use keep: { errors: true, slow: true }'],
  [{ slowerThanMs: 500 }, 'use keep: { errors: true, slow: true } and slow: { afterMs'],
  [{ keep: { slowerThanMs: 500 } }, 'use keep: { errors: true, slow: true } and slow: { afterMs'],
  [{ keep: { slow: true }, slow: false }, 'keep.slow'],
  [{ spans: 'handler' }, 'true, false or an object with handler, hooks, unrouted'],
  [{ outbound: 'http' }, 'true, false or an object with http, undici'],
  [{ buffer: 1024 }, 'an object with maxBytes, flushDelayMs, closeTimeoutMs'],
  [{ exclude: ['/health'] }, "ignore: ['/health']"],
  [{ ignorePaths: ['/health'] }, '`ignore`'],
  [{ instrumentations: [] }, 'outbound'],
  [{ requestHook () {} }, 'onStart'],
  [{ serviceNam: 'shop' }, '`serviceName`'],
  [{ handler: true }, 'use spans: { handler }'],
  [{ hooks: ['onRequest'] }, 'use spans: { hooks }'],
  [{ metricsPath: '/metrics' }, 'use metrics: { path }'],
  [{ flushDelayMs: 5 }, 'use buffer: { flushDelayMs }'],
  [{ propagateTo () {} }, 'use outbound: { propagateTo }'],
  [{ unsampledLevel: 'warn' }, 'use logs: { unsampledLevel }'],
  [{ timeoutMs: 5 }, 'use exporter: { headers, compression, timeoutMs }'],
  [{ exporterUrls: [] }, "use exporter: { url: 'http://localhost:4318' }"],
  [{ urls: ['http://a'] }, "use exporter: { url: 'http://localhost:4318' }"],
  [{ exporter: { urls: ['http://a'] } }, 'did you mean `exporter.url`?'],
  [{ links: 5 }, 'use limits: { links }'],
  [{ defaultStoreValues: {} }, 'use store'],
  [{ propagators: [] }, 'use OTEL_PROPAGATORS'],
  [{ traceExporter: {} }, "use exporter: { url: 'http://localhost:4318' }, or spanProcessors"],
  [{ dsn: 'https://key@host/1' }, 'use exporter: { url'],
  [{ ignore: '/health/.*' }, 'is read as a path'],
  [{ ignore: ['/ok', '/users/(a|b)'] }, 'is read as a path'],
  [{ ignore: '*\\.js$' }, 'is read as a path']
]) {
  test(`option ${JSON.stringify(options)}: ${fix}`, async (t) => {
    const message = said(options)
    t.match(message, /^LT_(?:ERR|WARN)_OPTION_[A-Z]+ /)
    t.ok(message?.includes(fix), message)
  })
}

for (const [variables, fix] of [
  [{ OTEL_EXPORTER_OTLP_ENDPONT: 'http://a:4318' }, 'did you mean OTEL_EXPORTER_OTLP_ENDPOINT?'],
  [{ OTEL_EXPORTER_OTLP_HEADER: 'a=b' }, 'did you mean OTEL_EXPORTER_OTLP_HEADERS?'],
  [{ OTEL_TRACE_SAMPLER: 'always_off' }, 'did you mean OTEL_TRACES_SAMPLER?'],
  [{ OTEL_SERVICENAME: 'shop' }, 'did you mean OTEL_SERVICE_NAME?'],
  [{ OTEL_RESOURCE_ATTRIBUTE: 'a=b' }, 'did you mean OTEL_RESOURCE_ATTRIBUTES?'],
  [{ OTEL_TRACES_SAMPLER_ARG: '0.1' }, 'OTEL_TRACES_SAMPLER=parentbased_traceidratio'],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '10%' }, 'a ratio from 0 to 1'],
  [{ OTEL_TRACES_SAMPLER: '0.1' }, 'parentbased_traceidratio'],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key: k' }, 'name=value'],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'authorization: Basic a=' }, 'name=value'],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'k' }, 'name=value'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318/v1/traces' }, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'a:4318' }, 'with http: or https:'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4317' }, 'use port 4318'],
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'http/protobuf is used'],
  [{ OTEL_TRACES_EXPORTER: 'jaeger' }, 'otlp'],
  [{ OTEL_SDK_DISABLED: '1' }, 'true or false'],
  [{ OTEL_PROPAGATORS: 'jaeger' }, 'tracecontext']
]) {
  test(`variables ${JSON.stringify(variables)}: ${fix}`, async (t) => {
    const { warnings } = resolveOptions({}, variables)
    t.equal(warnings.length, 1, JSON.stringify(warnings))
    t.ok(warnings[0]?.message.includes(fix), warnings[0]?.message)
    t.notMatch(warnings[0]?.message, /'k'|Basic/, 'no value is shown')
  })
}

test('other variables of the specification are not reported as misspelled', async (t) => {
  const names = ['OTEL_BLRP_SCHEDULE_DELAY', 'OTEL_BLRP_MAX_QUEUE_SIZE', 'OTEL_BLRP_MAX_EXPORT_BATCH_SIZE', 'OTEL_METRIC_EXPORT_INTERVAL', 'OTEL_METRIC_EXPORT_TIMEOUT',
    'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT', 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', 'OTEL_EXPORTER_ZIPKIN_ENDPOINT', 'OTEL_NODE_RESOURCE_DETECTORS', 'OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT']
  t.same(resolveOptions({}, Object.fromEntries(names.map((name) => [name, '1']))).warnings, [])
})
