'use strict'

// The sentences that the pages and index.d.ts have for the rows of lib/config/table.js. They are not in the table itself, because every
// start of an application would load them. `npm run docs:tables` writes them; test/house/options.test.js checks them.
//
//   text      for docs/options.md and index.d.ts
//   more      only for index.d.ts: details that the pages explain elsewhere
//   default   replaces the row's own default where that is not enough
//   type      for index.d.ts, where the check does not give the full type: a function's parameters, an interface

const table = require('../lib/config/table')

const OPTIONS = {
  enabled: {
    text: '`false`: no spans, metrics or exported log lines from this application. The request context still works, and an incoming `traceparent` is passed on. Overrides `OTEL_SDK_DISABLED`, which covers the whole process.',
    default: '`true`'
  },
  serviceName: {
    text: 'Sets `service.name`. Default: the first of `OTEL_SERVICE_NAME`, `service.name` in `OTEL_RESOURCE_ATTRIBUTES`, the name in your package.json, `npm_package_name`, `faas.name` and `unknown_service:node`.',
    default: 'detected'
  },
  resource: {
    text: 'More resource attributes, for example `deployment.environment.name`. They override `OTEL_RESOURCE_ATTRIBUTES` and detected attributes.',
    default: '`{}`',
    type: 'Attributes'
  },
  exporter: {
    text: "Where spans go: `'otlp'`, `'otlp/stdout'` (one line of OTLP JSON per export), `'console'` (a tree per request), `'none'`, or [OTLP settings](#the-exporter).",
    type: "'otlp' | 'otlp/stdout' | 'console' | 'none' | ExporterOptions"
  },
  'exporter.url': {
    text: 'URL of the collector. If it has no path, light-trace appends `/v1/traces`. A user and password in it become an `authorization` header.',
    default: '`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT` + `v1/traces`, `http://localhost:4318/v1/traces`',
    type: 'string | URL'
  },
  'exporter.headers': {
    text: 'An object, Map or Headers. Overrides the same headers from variables. Never logged.',
    type: 'Record<string, string> | Iterable<[string, string]>'
  },
  'exporter.compression': { text: "`'none'`, `'gzip'` or `'zstd'`, off the main thread. zstd falls back to gzip before Node 22.15, and if the collector rejects it (400 or 415)." },
  'exporter.timeoutMs': { text: 'Milliseconds for one attempt, response included. `0`: no limit.' },
  'exporter.ca': { text: 'Trusted certificate authorities: PEM or a file path. Read once.', default: "`OTEL_EXPORTER_OTLP_CERTIFICATE`, Node's own", type: 'string | Buffer' },
  'exporter.cert': { text: 'Client certificate for mTLS: PEM or a file path. Read once.', type: 'string | Buffer' },
  'exporter.key': { text: 'Key of the client certificate: PEM or a file path. Read once.', type: 'string | Buffer' },
  'exporter.insecureHeaders': {
    text: '`true`: send credential headers over `http:` to other machines too.',
    more: '`authorization`, `api-key` and names with `token` are among them.'
  },
  spanProcessors: { text: 'Span processors of OpenTelemetry SDK 2.x or 3.x. They replace the exporter, unless you also set `exporter` in code: then [both receive the spans](#where-spans-go).', type: 'SpanProcessor[]' },
  tracerProvider: { text: 'An OpenTelemetry SDK provider that creates the spans. `false`: ignore the globally registered provider.', type: 'TracerProvider | false' },
  registerGlobals: { text: 'Register with `@opentelemetry/api` if nothing else has, so that `trace.getTracer()` works.' },
  sampler: {
    text: "`'always_on'`, `'always_off'`, a ratio from 0 to 1, `{ perSecond: 50 }`, or an SDK Sampler. A caller's sampled flag takes precedence over all but the Sampler.",
    default: "`OTEL_TRACES_SAMPLER`, `'always_on'`",
    type: 'SamplerOption'
  },
  'sampler.perSecond': { text: 'Approximate number of new traces to sample per second. Rare routes are sampled fully; busy routes share the rest.' },
  keep: { text: 'Exports [unsampled requests](sampling.md#keep) that failed or were slow. `true`: `{ errors: true }`.' },
  'keep.errors': { text: 'Export unsampled requests that fail.' },
  'keep.aborted': { text: 'Export unsampled requests whose client disconnects before the response. Any client can cause this.' },
  'keep.slow': { text: 'Export unsampled requests that are slow (`slow.afterMs`).' },
  'keep.asked': { text: 'Export unsampled requests for which your code calls `request.trace.keep(reason)`. Always on with `errors`, `aborted`, `slow` or `recorder`.' },
  'keep.maxPerSecond': { text: 'Approximate maximum number of kept requests per second. Beyond it, light-trace exports a sample, with an [adjusted sampling threshold](sampling.md#keep).' },
  'keep.recorder': {
    text: 'Holds the latest spans of unsampled requests [in memory](sampling.md#the-recorder). `true`: `{}`. Not allowed in `configFile`.',
    more: '`lightTrace.snapshot()` and `request.trace.keep()` export them.'
  },
  'keep.recorder.maxBytes': { text: 'Memory for recorded spans in bytes, in addition to `buffer.maxBytes`. New spans overwrite the oldest.' },
  'keep.recorder.seconds': { text: 'How many seconds a snapshot covers by default.' },
  'keep.recorder.errorsPerSecond': { text: 'Take a snapshot after about this many 5xx responses in a second. `0`: never.' },
  'keep.recorder.blockedLoop': { text: 'Take a snapshot when the event loop is blocked. Requires `slow.blockedLoop`.' },
  slow: {
    text: 'Defines when a request is slow, and what its span then records. `keep.slow` exports slow requests; `logs.buffer` prints their log lines. `false`: no request is slow.',
    default: '`{ afterMs: 250 }`'
  },
  'slow.afterMs': {
    text: 'Minimum duration of a slow request, in milliseconds. Its span records [what it waited for](slow.md). Failed and kept requests record this from 20 ms. `0`: every request.',
    more: 'The attributes are `light_trace.time.*`.',
    default: '`LIGHT_TRACE_SLOW_AFTER_MS`, `250`'
  },
  'slow.blockedLoop': {
    text: 'Records [the line that blocked the event loop](slow.md#the-line-that-blocked-the-loop) on the requests that waited for it. `true`: `{ afterMs: 100 }`.',
    more: 'A worker watches the event loop while requests are open.'
  },
  'slow.blockedLoop.afterMs': { text: 'Shortest block to record, in milliseconds; 20 or more.' },
  configFile: {
    text: 'Path of a JSON file that overrides [some of these options](#changes-without-a-deploy) while the application runs.',
    more: 'It is read again after each change and on SIGHUP. A missing or invalid file is ignored, with a warning.'
  },
  ignore: {
    text: "Requests that get no span: a path (`'/health'`, `'/assets/*'`), a RegExp, a function `(request) => boolean`, or an array of these. Their context still works.",
    type: 'IgnoreOption'
  },
  trustIncoming: {
    text: "Continue the caller's trace. `false`, or a function `(request) => boolean` that returns `false`: start a new trace, linked to the caller's span.",
    type: 'boolean | ((request: FastifyRequest) => boolean)'
  },
  headers: { text: '[Headers to record](#what-a-span-holds), baggage to record, and the `server-timing` response header.' },
  'headers.request': { text: 'Request headers to record, except [credential headers](#what-a-span-holds).', type: 'string[]' },
  'headers.response': { text: 'Response headers to record, except credential headers.', type: 'string[]' },
  'headers.baggage': {
    text: "Baggage keys to record on the request's span: `['tenant.id']`. Only from trusted callers, at most 256 characters a value. Never replaces other attributes.",
    type: 'string[]'
  },
  'headers.serverTiming': {
    text: 'Send the trace id to the client in the `server-timing` response header.',
    more: 'Existing entries stay. It adds `trace;desc=…` (W3C Trace Context level 3) and `traceparent;desc="…"`.'
  },
  redactQuery: {
    text: 'More query parameters to record as `REDACTED`: an array of names, or a function that [replaces the built-in list](#what-a-span-holds).',
    more: 'Applies to `url.query`, and to the `url.full` of outgoing calls. Names are compared without case and separators; a function receives each decoded name.',
    type: 'string[] | ((name: string) => boolean)'
  },
  spanName: { text: "`(request) => string`: the name of the request's span, instead of `GET /users/:id`.", type: '((request: FastifyRequest) => string)' },
  attributes: {
    text: "Initial attributes of each request's span: an object, which costs nothing per request, or `(request) => attributes`.",
    type: 'Attributes | ((request: FastifyRequest) => Attributes)'
  },
  omitAttributes: {
    text: "Attributes to leave out of everything that light-trace exports: keys such as `'client.address'`, or prefixes such as `'network.peer.*'`. See [privacy.md](privacy.md).",
    more: 'In log records, nested members too, by their path: `req.remoteAddress`. `service.name` and `telemetry.sdk.*` stay.',
    type: 'string[]'
  },
  inheritAttributes: {
    text: "Attributes of the request's span to [copy to its child spans](recipes.md#tenant-on-every-span) and exported log records: `['tenant.id']`.",
    more: 'The value is the one set when the child ends or the line is logged. Own attributes with the same key stay. No effect for requests that are neither sampled nor kept, with `tracerProvider`, for jobs (`run`), `root: true` spans and metrics, nor across `app.inject`.',
    type: 'string[]'
  },
  onStart: { text: "`(span, request)`: called after the request's span starts.", type: '((span: Span, request: FastifyRequest) => void)' },
  onEnd: { text: "`(span, request, reply)`: called just before the request's span ends.", type: '((span: Span, request: FastifyRequest, reply: FastifyReply) => void)' },
  store: {
    text: "Initial content of each request's [store](context.md#the-store): an object, which is copied, or `(request) => object`.",
    type: 'Store | ((request: FastifyRequest) => Store)'
  },
  spans: { text: 'Which spans a request has, and what they record. `true`: `{ handler: true }`.', default: '`{}`' },
  'spans.handler': { text: 'A child span for the handler, or for your not-found handler.', more: 'The span of a not-found handler starts with the hooks before it and ends when the response closes.' },
  'spans.hooks': {
    text: 'A child span for each of these stages that has hooks: `onRequest`, `preParsing`, `preValidation`, `preHandler`, `preSerialization`, `onSend`, `onResponse`, `onError`.',
    type: 'LifecycleHook[]'
  },
  'spans.unrouted': {
    text: 'Spans for [requests that never reach a hook](#which-requests-are-traced) of light-trace, such as a bad URL.',
    more: 'HTTP/1 only, and only if light-trace is registered at the root. These spans have no `http.route`; only the functions `ignore` and `trustIncoming` are called for them.'
  },
  'spans.codeLocation': {
    text: 'Record [where the route is declared](#what-a-span-holds) as `code.file.path` and `code.line.number`. On under `npx light-trace app.js` and with a `light-trace/testing` collector.',
    more: 'light-trace captures one stack trace for each route declared after it is loaded, and none per request.'
  },
  'spans.clientErrors': {
    text: 'Record what was thrown if the response is 4xx: an `exception` event and `error.type`. `false` suits services with many 4xx responses.',
    more: "The span's status stays unset."
  },
  outbound: { text: 'Spans and trace headers for [outgoing calls](outbound.md). `false`: none.', default: '`{}`' },
  'outbound.http': { text: 'Trace `node:http`, `node:https` and `node:http2`.' },
  'outbound.undici': { text: 'Trace `fetch` and every undici client.' },
  'outbound.libraries': { text: 'Trace libraries that publish diagnostics channels.' },
  'outbound.channels': {
    text: "Your own channels, `{ 'my-lib:op': { kind, name, attributes } }`. `true` turns on a library's channel that is off by default.",
    type: 'Record<string, ChannelOptions | true>'
  },
  'outbound.channels.kind': { text: 'Kind of its spans.', type: "'internal' | 'server' | 'client' | 'producer' | 'consumer' | SpanKind" },
  'outbound.channels.name': { text: 'Name of its spans.', default: "the channel's name", type: 'string | ((context: any) => string)' },
  'outbound.channels.attributes': { text: 'Attributes of its spans.', type: 'Attributes | ((context: any) => Attributes)' },
  'outbound.propagateTo': {
    text: '`(url) => boolean`: which calls get `traceparent`, `tracestate` and `baggage` headers.',
    default: 'all',
    type: '((url: string) => boolean)'
  },
  'outbound.graphqlDocuments': { text: 'Record the GraphQL operation as `graphql.document`, with `?` for its values.' },
  'outbound.fold': { text: 'Record the first identical calls under a span, and [aggregate the rest](outbound.md#folding) into one span. `true`: `{ after: 10 }`.' },
  'outbound.fold.after': { text: 'How many identical calls under a span get their own spans, 1 or more.' },
  logs: {
    text: 'Puts [trace ids on log lines](recipes.md#trace-ids-on-log-lines), and [exports or holds lines](logs.md). `true`: `{ ids: true }`. `false`: neither ids nor export, even if `OTEL_LOGS_EXPORTER` is set.',
    default: '`{ ids: true }`'
  },
  'logs.ids': { text: 'Add `trace_id`, `span_id` and `trace_flags` to `request.log` lines.' },
  'logs.export': {
    text: "`true` (where spans go), `'otlp'`, `'otlp/stdout'`, `'console'` (a line of text per record), or an object like [`exporter`](options.md#the-exporter).",
    type: "boolean | 'otlp' | 'otlp/stdout' | 'console' | 'none' | ExporterOptions"
  },
  'logs.level': { text: "Minimum level to export, for example `'info'`.", default: "the logger's" },
  'logs.unsampledLevel': { text: 'Minimum level to export from unsampled requests.' },
  'logs.maxPerSecond': { text: 'Maximum number of lines exported per second and level.' },
  'logs.buffer': { text: "Lowest level to hold, for example `'debug'`. light-trace holds a request's lines from this level up to the logger's own, and prints them only if the request fails or is slow.", type: 'string | false', default: '`false`' },
  buffer: { text: 'Memory and delay for undelivered spans. A full buffer is [thinned](reliability.md#a-full-buffer-is-thinned).', default: '`{}`' },
  'buffer.maxBytes': { text: 'Memory for undelivered spans, in bytes.' },
  'buffer.flushDelayMs': { text: 'Maximum milliseconds that spans wait to be exported. The wait starts at 2 ms and doubles each time.' },
  'buffer.closeTimeoutMs': { text: 'Maximum milliseconds that `app.close()` waits for an unresponsive collector. If the connection is refused, it does not wait.' },
  metrics: { text: 'Counts all requests, sampled or not: [metrics](metrics.md). `true`: `{}`.', more: '`OTEL_METRICS_EXPORTER` turns them on too.' },
  'metrics.exporter': {
    text: "`'otlp'`, `'otlp/stdout'`, `'none'`, or an object like `exporter`.",
    default: '`OTEL_METRICS_EXPORTER`, like `exporter`',
    type: "'otlp' | 'otlp/stdout' | 'none' | ExporterOptions"
  },
  'metrics.path': { text: 'Path for Prometheus to scrape. Requests to it are neither traced nor counted.' },
  'metrics.runtime': { text: 'Record event loop, garbage collection, heap, CPU and memory.' },
  'metrics.attributes': {
    text: '`(request, reply) => attributes`: more attributes for `http.server.request.duration`. Called after the request ends.',
    more: 'Each set is a series. Beyond 2,000 series, `otel.metric.overflow` counts the rest.',
    type: '((request: FastifyRequest, reply: FastifyReply) => Attributes)'
  },
  'metrics.buckets': { text: 'Ascending bucket bounds of `http.server.request.duration`, in seconds.', default: 'semantic conventions: 0.005 to 10', type: 'number[]' },
  'metrics.histograms': { text: "Bucket type: `'explicit'` or `'exponential'`." },
  'metrics.temporality': { text: "OTLP temporality: `'cumulative'`, `'delta'` or `'lowmemory'`." },
  'metrics.exemplars': { text: "Measurements to export as exemplars, with trace and span ids: `'trace_based'`, `'always_on'` or `'always_off'`." },
  'metrics.activeRequests': { text: 'Record `http.server.active_requests`.' },
  'metrics.bodySizes': { text: 'Record `http.server.request.body.size` and `http.server.response.body.size`.' },
  'metrics.intervalMs': {
    text: 'Milliseconds between exports, 100 or more. `Infinity`: only on flush and close.',
    more: 'The first export comes after 0.5 to 1.5 intervals, so that a fleet does not export at once.'
  },
  limits: { text: 'Maximum size of a span, and maximum sampled requests per second. Anything beyond a limit is dropped and counted.', default: '`{}`' },
  'limits.attributes': { text: "Maximum attributes of a span. light-trace's own take precedence." },
  'limits.attributeValueLength': { text: 'Maximum characters of a string value. Longer strings are truncated.' },
  'limits.events': { text: 'Maximum events of a span.' },
  'limits.links': { text: 'Maximum links of a span.' },
  'limits.sampledPerSecond': { text: 'Maximum sampled requests per second, including those sampled by callers.' },
  'config.trace.spanName': { text: 'A string, or `(request) => string`.', type: 'string | ((request: FastifyRequest) => string)' },
  'config.trace.attributes': {
    text: 'An object, or `(request) => attributes`. Added to those of the option `attributes`.',
    type: 'Attributes | ((request: FastifyRequest) => Attributes)'
  },
  'config.trace.spans': { text: '`handler` and `hooks`. Replaces the option `spans`.', type: "Pick<SpansOptions, 'handler' | 'hooks'> | boolean" },
  'config.trace.sampler': { text: 'Replaces the option `sampler`.', type: 'SamplerOption' },
  'config.trace.slow': { text: '`afterMs`. Replaces the option `slow`.', type: "Pick<SlowOptions, 'afterMs'> | boolean" },
  'config.trace.metrics': { text: '`false`: [metrics](metrics.md) ignore this route.' },
  'config.trace.ignore': { text: 'Like the option `ignore`. `true` means `trace: false`.', type: 'boolean | IgnoreOption' }
}

/** Names and texts of the types of groups in index.d.ts, by path. `isAlias`: declared as a type, so that literals of other types can be assigned. */
const TYPES = {
  exporter: { text: 'OTLP over HTTP with protobuf. OTEL_EXPORTER_OTLP_* variables set the members that are left out.' },
  keep: { text: 'Which unsampled requests are exported anyway. See docs/sampling.md.' },
  'keep.recorder': { text: 'What the recorder holds, and when it takes a snapshot by itself. See docs/sampling.md.' },
  slow: { text: 'When a request is slow, and what is recorded about it. See docs/slow.md.' },
  headers: { text: 'Headers and baggage to record, and the header to send to clients.' },
  spans: { text: 'Which spans a request has, and what they record.', isAlias: true },
  'outbound.channels': { name: 'ChannelOptions', text: 'How events of a TracingChannel (`node:diagnostics_channel`) become spans.' },
  'outbound.fold': { text: 'Which calls share a span. See docs/outbound.md.' },
  outbound: { text: 'Spans and trace headers for outgoing calls. See docs/outbound.md.' },
  logs: { text: "Exported and held log lines. Levels are the logger's. See docs/logs.md." },
  'slow.blockedLoop': { text: 'When the event loop counts as blocked. See docs/slow.md.' },
  buffer: { text: 'Memory and delay for undelivered spans. See docs/reliability.md.' },
  metrics: { text: "Metrics, with the names and units of OpenTelemetry's semantic conventions. See docs/metrics.md." },
  limits: { text: 'Maximum size of a span, and maximum sampled requests per second. Anything beyond a limit is dropped and counted.' },
  '': {
    name: 'LightTraceOptions',
    text: [
      'Options of `app.register(lightTrace, options)`. They override the OTEL_* variables.',
      '@throws LT_ERR_OPTION_UNKNOWN for a name that resembles an option; the message suggests that option. Other unknown names are',
      '  ignored, with a warning: fastify-cli and @fastify/autoload pass their flags to every plugin.',
      '@throws LT_ERR_OPTION_INVALID for an invalid value; the message shows the value received'
    ]
  },
  'config.trace': { name: 'RouteTraceOptions', text: "A route's `config.trace`. The plugin's options apply to members that are left out.", isAlias: true }
}

/**
 * The rows of docs/environment.md: variables of rows of the table, by path, and variables that are read elsewhere, by name.
 */
const VARIABLES = [
  { rows: ['enabled'], default: '`false`', text: '`true`: like `enabled: false`, for the whole process. The option overrides it.' },
  { rows: ['serviceName'], text: 'See `serviceName`.' },
  { rows: ['resource'], text: 'Resource attributes: `k=v,k2=v2`, percent-encoded.' },
  {
    names: ['OTEL_RESOURCE_ATTRIBUTES_NODE_NAME', 'OTEL_RESOURCE_ATTRIBUTES_POD_NAME', 'OTEL_RESOURCE_ATTRIBUTES_POD_UID'],
    text: '`k8s.node.name`, `k8s.pod.name`, `k8s.pod.uid` of the resource. The OpenTelemetry operator for Kubernetes sets them.'
  },
  { rows: ['logLevel'], text: "`error` or `none` silences light-trace's warnings." },
  { rows: ['propagators'], text: '`tracecontext`, `baggage`, `none`; with `@opentelemetry/propagator-b3` installed, also `b3` and `b3multi`.' },
  {
    rows: ['sampler'],
    default: '`parentbased_always_on`, `1`',
    text: '`always_on`, `always_off` or `traceidratio`, with or without the prefix `parentbased_`. `_ARG` is the ratio for `traceidratio`.'
  },
  { rows: ['exporter'], text: '`otlp`, `otlp/stdout`, `console` or `none`. In a list, the first supported value applies.' },
  {
    rows: ['exporter.url'],
    default: '`http://localhost:4318`',
    text: 'Where to send spans. `v1/traces` is appended only to the second variable.'
  },
  {
    names: ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'],
    default: '`http/protobuf`',
    text: 'For `grpc` and `http/json`, light-trace warns and uses `http/protobuf`.'
  },
  { rows: ['exporter.headers'], text: 'Headers of the exports: `k=v,k2=v2`, percent-encoded.' },
  { rows: ['exporter.compression'], text: '`none`, `gzip` or `zstd`.' },
  { rows: ['exporter.timeoutMs'], text: 'Milliseconds for one attempt. `0`: no limit.' },
  { rows: ['exporter.ca'], text: 'PEM file with trusted certificate authorities.' },
  { rows: ['exporter.cert'], text: 'PEM file with the client certificate.' },
  { rows: ['exporter.key'], text: 'PEM file with the client key.' },
  { rows: ['exporter.insecureHeaders'], text: '`true`: send credential headers over `http:` to other machines too.' },
  { rows: ['buffer.flushDelayMs'], text: 'See `buffer.flushDelayMs`.' },
  { names: ['OTEL_BSP_EXPORT_TIMEOUT'], text: 'Milliseconds for one attempt. The shorter of this and `OTEL_EXPORTER_OTLP_TIMEOUT` applies.' },
  {
    names: ['OTEL_BSP_MAX_QUEUE_SIZE'],
    default: 'none',
    text: 'Ignored, and logged at `info`: `buffer.maxBytes` limits the buffer in bytes, not in spans.'
  },
  { rows: ['batch.maxSpans'], default: '', text: 'Maximum number of spans per export. By default only bytes limit an export.' },
  { rows: ['metrics.exporter'], default: 'off', text: '`otlp`, `otlp/stdout`, `prometheus`, or a list of these: turns [metrics](metrics.md) on. `none`: no export.' },
  { rows: ['metrics.intervalMs'], text: 'See `metrics.intervalMs`.' },
  {
    names: ['OTEL_METRIC_EXPORT_TIMEOUT'],
    default: '`30000`',
    text: 'Milliseconds for one attempt. The shorter of this and `OTEL_EXPORTER_OTLP_METRICS_TIMEOUT` applies.'
  },
  { rows: ['metrics.exemplars'], text: 'See `metrics.exemplars`.' },
  { names: ['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'], default: '`OTEL_EXPORTER_OTLP_ENDPOINT` + `v1/metrics`', text: 'Where to send metrics. Used unchanged.' },
  { names: exporterVariables('METRICS').slice(1), default: 'the variables without `METRICS`', text: 'Like the `TRACES` variables, for metrics.' },
  { rows: ['metrics.temporality'], text: 'See `metrics.temporality`.' },
  { rows: ['metrics.histograms'], default: '`explicit_bucket_histogram`', text: 'Or `base2_exponential_bucket_histogram`. See `metrics.histograms`.' },
  { rows: ['prometheus.host', 'prometheus.port'], text: 'Where `OTEL_METRICS_EXPORTER=prometheus` serves `/metrics`.' },
  { rows: ['logs.export'], default: 'off', text: '`otlp`, `otlp/stdout` or `console`: exports [log lines](logs.md).' },
  {
    rows: ['logRecords.flushDelayMs', 'logRecords.maxRecords'],
    names: ['OTEL_BLRP_EXPORT_TIMEOUT'],
    default: '`1000`, none, `30000`',
    text: 'Like the `OTEL_BSP_*` variables, for log records.'
  },
  { names: exporterVariables('LOGS'), default: 'the variables without `LOGS`', text: 'Like the `TRACES` variables, for log records.' },
  { names: ['OTEL_BLRP_MAX_QUEUE_SIZE'], default: 'none', text: 'Ignored, and logged at `info`: log records share the buffer with spans.' },
  { rows: ['logRecords.attributes', 'logRecords.attributeValueLength'], default: 'limits of spans', text: 'Limits of a log record.' },
  { names: ['OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN'], text: '`logs` or `logs/dup`: exceptions become [log records](logs.md#exceptions-as-log-records).' },
  { rows: ['limits.attributes'], text: 'See `limits.attributes`.' },
  { rows: ['limits.attributeValueLength'], text: 'See `limits.attributeValueLength`.' },
  { rows: ['limits.events'], text: 'See `limits.events`.' },
  { rows: ['limits.links'], text: 'See `limits.links`.' },
  { rows: ['limits.attributesPerEvent'], text: 'Maximum attributes of an event.' },
  { rows: ['limits.attributesPerLink'], text: 'Maximum attributes of a link.' },
  {
    rows: ['knownMethods'],
    default: 'semantic conventions',
    text: 'Replaces the list of known HTTP methods: comma-separated, case-sensitive. Other methods are recorded as `_OTHER`.'
  },
  { rows: ['slow.afterMs'], text: 'See `slow.afterMs`.' },
  {
    rows: ['slow.blockedLoop'],
    default: '`false`',
    text: '`true`, `false`, or milliseconds (20 or more). See `slow.blockedLoop`.'
  },
  { rows: ['ignore'], text: 'Comma-separated paths that get no spans. See `ignore`.' },
  {
    names: ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'],
    text: "The proxy to the collector, by [Node's rules](https://nodejs.org/api/http.html#built-in-proxy-support). Used only if Node uses proxies too (`NODE_USE_ENV_PROXY=1` or `--use-env-proxy`); otherwise ignored, and logged at `info`. Lower-case names take precedence. See [backends.md](backends.md#behind-a-proxy)."
  },
  {
    rows: ['environmentTrace'],
    text: 'W3C trace context: the parent of spans that have no other, for example jobs. Requests ignore it.'
  },
  { names: ['NODE_OTEL', 'NODE_OTEL_ENDPOINT'], text: "Turn on Node's own tracer. light-trace then warns, because each request gets two SERVER spans." },
  {
    names: ['OTEL_CONFIG_FILE', 'OTEL_EXPERIMENTAL_CONFIG_FILE'],
    text: 'Path of a [configuration file](#a-configuration-file) that replaces all other `OTEL_*` variables.'
  }
]

/** The exporter variables of another signal. They mean the same as those of spans. */
function exporterVariables (signal) {
  const own = Object.values(table.OPTIONS.exporter.members).flatMap(({ variables = [] }) => variables).filter((name) => name.includes('_TRACES_'))
  return [own[0], 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', ...own.slice(1)].map((name) => name.replace('TRACES', signal))
}

module.exports = { OPTIONS, TYPES, VARIABLES }
