'use strict'

// What the pages and index.d.ts say about the rows of lib/config/table.js: a sentence for each. They are not in the table, because each
// start of an application would read them. `npm run docs:tables` writes them; test/house/options.test.js compares.
//
//   text      for docs/options.md and index.d.ts
//   more      for index.d.ts alone: what the page says at length somewhere else
//   default   where the row's own default says too little
//   type      where index.d.ts has more to say than the check: a function's parameters, an interface

const table = require('../lib/config/table')

const OPTIONS = {
  serviceName: {
    text: 'The name of your service, `service.name`. Without it: `OTEL_SERVICE_NAME`, then `service.name` in `OTEL_RESOURCE_ATTRIBUTES`, then the name in your package.json, then `npm_package_name` (which npm sets for its scripts), then `unknown_service:node`.',
    default: 'found out'
  },
  resource: {
    text: 'More attributes of the resource, such as `deployment.environment.name`. They win over those of `OTEL_RESOURCE_ATTRIBUTES` and those that light-trace finds out.',
    default: '`{}`',
    type: 'Attributes'
  },
  exporter: {
    text: "Where spans go: `'otlp'`, `'otlp/stdout'` (OTLP as lines of JSON on standard output), `'console'` (trees on standard output), `'none'`, or [an object](#the-exporter) that describes an OTLP exporter.",
    type: "'otlp' | 'otlp/stdout' | 'console' | 'none' | ExporterOptions"
  },
  'exporter.url': {
    text: 'The URL to send to, used as it is. If it has no path, `/v1/traces` is added. User and password in it become an `authorization` header.',
    default: '`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT` + `v1/traces`, `http://localhost:4318/v1/traces`',
    type: 'string | URL'
  },
  'exporter.headers': {
    text: 'An object, a Map or Headers. Added to the headers of the variables, and wins over them. Never logged.',
    type: 'Record<string, string> | Iterable<[string, string]>'
  },
  'exporter.compression': { text: "`'none'`, `'gzip'` or `'zstd'`, which run off the main thread. zstd needs Node 22.15; before it, and for a collector that refuses it (400 or 415), it is gzip." },
  'exporter.timeoutMs': { text: 'Milliseconds for one attempt, from its start to the end of the answer. 0 is no limit.' },
  'exporter.ca': { text: 'Certificate authorities to trust: PEM, or the path of a file. Read once.', default: "`OTEL_EXPORTER_OTLP_CERTIFICATE`, Node's own", type: 'string | Buffer' },
  'exporter.cert': { text: 'A client certificate for mTLS: PEM, or the path of a file. Read once.', type: 'string | Buffer' },
  'exporter.key': { text: 'The key of the client certificate: PEM, or the path of a file. Read once.', type: 'string | Buffer' },
  'exporter.insecureHeaders': { text: 'Headers that look like credentials are not sent over `http:` to another machine, unless this is `true`.', more: '`authorization`, `api-key` and names with `token` are among them.' },
  spanProcessors: { text: "An array of span processors of OpenTelemetry's SDK 2.x or 3.x. Spans go through them instead of the exporter.", type: 'SpanProcessor[]' },
  tracerProvider: { text: "A tracer provider of OpenTelemetry's SDK, which then makes the spans. `false`: never use the one that is registered globally.", type: 'TracerProvider | false' },
  registerGlobals: { text: 'Register with `@opentelemetry/api` where nothing else is registered, so that `trace.getTracer()` works.' },
  sampler: {
    text: "`'always_on'`, `'always_off'`, a ratio from 0 to 1, `{ perSecond: 50 }`, or a Sampler of the SDK. A caller's sampled flag wins.",
    default: "`OTEL_TRACES_SAMPLER`, `'always_on'`",
    type: 'SamplerOption'
  },
  'sampler.perSecond': { text: 'About how many traces per second start here. The routes share them: rare routes are sampled whole, busy ones share the rest.' },
  keep: { text: '`{ errors, aborted, slowerThanMs, asked, maxPerSecond }`: export unsampled requests that failed, were slow, or that the application asks for. `true`: those that failed. See [sampling.md](sampling.md#keep).' },
  'keep.errors': { text: 'Export unsampled requests that end with an error.' },
  'keep.aborted': { text: 'Export unsampled requests whose client left before the response was there. Any stranger can send such requests.' },
  'keep.slowerThanMs': { text: 'Export unsampled requests that take longer than this many milliseconds.' },
  'keep.asked': { text: 'Export unsampled requests for which the application calls `request.trace.keep(reason)`. It does so with the others, too: this is for `keep` without any of them.' },
  'keep.maxPerSecond': { text: 'About how many requests per second `keep` exports at most. Beyond it some are exported, and [say for how many they stand](sampling.md#keep).' },
  recorder: {
    text: '`{ maxBytes, seconds, errorsPerSecond, blockedLoop }`: hold the last spans of unsampled requests. `true` is `{}`. See [sampling.md](sampling.md#the-recorder).',
    more: '`lightTrace.snapshot()` and `request.trace.keep()` export them.'
  },
  'recorder.maxBytes': { text: 'Bytes of spans, beside `buffer.maxBytes`; the oldest are overwritten.' },
  'recorder.seconds': { text: 'How many seconds a snapshot reaches back, unless it is asked for with a number of its own.' },
  'recorder.errorsPerSecond': { text: 'About so many answers of 5xx within a second make a snapshot. `0`: none do.' },
  'recorder.blockedLoop': { text: 'With `blockedLoop`: a blocked event loop makes a snapshot.' },
  slow: {
    text: "From how many milliseconds on a request's span says [what it waited for](slow.md). Without it: `keep.slowerThanMs`, then `LIGHT_TRACE_SLOW_AFTER_MS`, then 250. `false`: never.",
    more: 'The attributes are `light_trace.time.*`.',
    default: '`{ afterMs: 250 }`'
  },
  'slow.afterMs': { text: 'Milliseconds; 0: each request. Requests that failed or are kept say it from 20 ms on.', default: '`keep.slowerThanMs`, `LIGHT_TRACE_SLOW_AFTER_MS`, `250`' },
  maxSampledPerSecond: { text: 'An upper bound for sampled requests per second, including those whose callers set the sampled flag.' },
  configFile: {
    text: 'The path of a JSON file whose `sampler`, `keep`, `ignore` and `logs` hold in place of these options, and [from each change of it on](#rates-without-a-deploy).',
    more: 'It is read again at once on SIGHUP. A file that is wrong changes nothing, and is logged.'
  },
  ignore: {
    text: "Requests that get no spans: a path (`'/health'`, `'/assets/*'`), a RegExp, a function `(request) => boolean`, or an array of these. They keep their context.",
    type: 'IgnoreOption'
  },
  trustIncoming: {
    text: "`false` or `(request) => boolean`: do not continue the caller's trace. Start a new one and link to the caller's span.",
    type: 'boolean | ((request: FastifyRequest) => boolean)'
  },
  requestHeaders: { text: 'Request headers to record. Headers that carry credentials are never recorded.', type: 'string[]' },
  responseHeaders: { text: 'Response headers to record. Headers that carry credentials are never recorded.', type: 'string[]' },
  omitAttributes: {
    type: 'string[]',
    text: "Attributes that leave the process in no span, event, link, log record or metric: keys such as `'client.address'`, or prefixes such as `'network.peer.*'`.",
    more: 'Of log records also members of attributes by their path, such as `req.remoteAddress`. `service.name` and `telemetry.sdk.*` stay.'
  },
  redactQuery: {
    text: 'More names of query parameters whose values are recorded as `REDACTED`, or a function that decides about all of them.',
    more: 'This holds for `url.query` and for the `url.full` of outgoing calls. Names are compared without case and separators; a function receives each name, decoded.',
    type: 'string[] | ((name: string) => boolean)'
  },
  spanName: { text: "`(request) => string`: the name of the request's span, instead of `GET /users/:id`.", type: '((request: FastifyRequest) => string)' },
  attributes: { text: "`(request) => attributes` to start the request's span with.", type: '((request: FastifyRequest) => Attributes)' },
  onStart: { text: "`(span, request)`: called when the request's span has started.", type: '((span: Span, request: FastifyRequest) => void)' },
  onEnd: { text: "`(span, request, reply)`: called just before the request's span ends.", type: '((span: Span, request: FastifyRequest, reply: FastifyReply) => void)' },
  store: {
    text: "What each request's store starts with: an object, which is copied, or `(request) => object`. See [context.md](context.md#the-store).",
    type: 'Store | ((request: FastifyRequest) => Store)'
  },
  spans: { text: "Child spans for the handler and for stages of Fastify's lifecycle. `true`: the handler." },
  'spans.handler': { text: 'A child span around the handler, also around a not-found handler of your own; that one begins with the hooks before it and ends when the response is closed.' },
  'spans.hooks': {
    text: 'A child span for each of these stages that has hooks: `onRequest`, `preParsing`, `preValidation`, `preHandler`, `preSerialization`, `onSend`, `onResponse`, `onError`.',
    type: 'LifecycleHook[]'
  },
  outbound: { text: 'Spans and trace headers for [outgoing calls](outbound.md); also `channels` and `propagateTo`. `true`: these defaults. `false`: none.' },
  'outbound.http': { text: 'Trace `node:http`, `node:https` and `node:http2`.' },
  'outbound.undici': { text: 'Trace `fetch` and every client of undici.' },
  'outbound.libraries': { text: 'Trace libraries that publish diagnostics channels.' },
  'outbound.channels': {
    text: "Channels of your own, `{ 'my-lib:op': { kind, name, attributes } }`, and those of libraries that are only traced if you name them.",
    more: '`true` is for one that light-trace knows.',
    type: 'Record<string, ChannelOptions | true>'
  },
  'outbound.channels.kind': { text: 'The kind of its spans.', type: "'internal' | 'server' | 'client' | 'producer' | 'consumer' | SpanKind" },
  'outbound.channels.name': { text: 'The name of its spans.', default: 'the name of the channel', type: 'string | ((context: any) => string)' },
  'outbound.channels.attributes': { text: 'Attributes of its spans.', type: 'Attributes | ((context: any) => Attributes)' },
  'outbound.propagateTo': {
    text: '`(url) => boolean`: which calls get the headers `traceparent`, `tracestate` and `baggage`.',
    default: 'all',
    type: '((url: string) => boolean)'
  },
  'outbound.graphqlDocuments': { text: 'Record the document of a GraphQL operation as `graphql.document`, with `?` for its values.' },
  'outbound.fold': { text: '`{ after: 10 }`: of the calls under one span that do the same, record the first ten, and [one span for the others](outbound.md#folding). `true`: ten.' },
  'outbound.fold.after': { text: 'How many of the calls under one span that do the same have spans of their own, 1 or more.' },
  unrouted: {
    text: "Spans for requests that never reach light-trace's hook, too: a bad URL, an app that is closing.",
    more: 'HTTP/1 only, and not if light-trace is registered in a child scope. These spans have no `http.route`, and only the functions `ignore` and `trustIncoming` are called for them.'
  },
  codeLocation: {
    text: "Where the route is declared, as `code.file.path` and `code.line.number` of the request's span. `true` under `npx light-trace app.js` and with a collector of [`light-trace/testing`](recipes.md#tests-of-your-own).",
    more: 'A stack is taken once for each route that is declared after light-trace is loaded, and nothing per request.'
  },
  clientErrors: {
    text: 'Whether an error that was thrown is recorded where the answer is 4xx: an `exception` event and `error.type`. `false` for services with floods of 4xx.',
    more: "The span's status stays unset."
  },
  logs: {
    text: '`trace_id`, `span_id` and `trace_flags` on the lines of `request.log`. See [recipes.md](recipes.md#trace-ids-on-log-lines). An object: [exported lines](logs.md) too, `logs.export`, `logs.level`, `logs.unsampledLevel`, `logs.maxPerSecond`, `logs.buffer`.'
  },
  'logs.export': {
    text: "`true`, `'otlp'`, `'otlp/stdout'`, `'console'` (a line of text for each record), or an object as [`exporter`](options.md#the-exporter) takes it.",
    more: '`true`: where spans go.',
    type: "boolean | 'otlp' | 'otlp/stdout' | 'console' | 'none' | ExporterOptions"
  },
  'logs.level': { text: "The least level that is exported: `'info'`.", default: "the logger's" },
  'logs.unsampledLevel': { text: 'The least level that is exported of requests that are not sampled.' },
  'logs.maxPerSecond': { text: 'How many lines of one level are exported in a second.' },
  'logs.buffer': { text: 'The least level of lines that are held, and printed if the request fails.' },
  replyHeader: {
    text: "`'server-timing'`: send the trace id to the caller in this response header.",
    more: 'It is appended to the metrics of the application: `trace;desc=…` (W3C Trace Context level 3) and `traceparent;desc="…"`.',
    default: '`false`'
  },
  baggage: {
    text: "Keys of a trusted caller's baggage that become attributes of the request's span: `['tenant.id']`. At most 256 characters of each, and never in place of an attribute that is there for another reason.",
    type: 'string[]'
  },
  blockedLoop: { text: '`true` or `{ afterMs: 100 }`: [the line that blocked the event loop](slow.md#the-line-that-blocked-the-loop), on the requests that waited for it.', more: 'A worker watches the event loop while requests are open.' },
  'blockedLoop.afterMs': { text: 'For how many milliseconds the event loop has to be blocked, 20 or more.' },
  buffer: { text: 'How many bytes undelivered spans may take, and how long a span may wait for others to be sent with it. A full buffer is [thinned](reliability.md#a-full-buffer-is-thinned).' },
  'buffer.maxBytes': { text: 'Bytes allocated for spans that are not yet delivered.' },
  'buffer.flushDelayMs': { text: 'Milliseconds that a span may wait for others. The first ones wait 2 ms, the next 4 ms, and so on up to this.' },
  closeTimeoutMs: { text: 'How many milliseconds `app.close()` waits for a collector that does not answer. A collector that refuses the connection is given up at once.' },
  metrics: { text: '`true`, or an object: count the requests, sampled or not. See [metrics.md](metrics.md).', more: '`OTEL_METRICS_EXPORTER` switches them on, too.' },
  'metrics.exporter': {
    text: "`'otlp'`, `'otlp/stdout'`, `'none'`, or an object as `exporter` takes it.",
    default: '`OTEL_METRICS_EXPORTER`, as `exporter`',
    type: "'otlp' | 'otlp/stdout' | 'none' | ExporterOptions"
  },
  'metrics.path': { text: 'A path on which Prometheus can scrape. Requests for it are neither traced nor counted.' },
  'metrics.runtime': { text: 'Event loop, garbage collection, heap, CPU and memory.' },
  'metrics.attributes': {
    text: '`(request, reply) => attributes`: more attributes of `http.server.request.duration`, asked for when the request has ended.',
    more: 'Each different set is a series; over 2,000 they are counted together as `otel.metric.overflow`.',
    type: '((request: FastifyRequest, reply: FastifyReply) => Attributes)'
  },
  'metrics.buckets': { text: 'Bounds of `http.server.request.duration`, in seconds, ascending.', default: 'those of the conventions, 0.005 to 10', type: 'number[]' },
  'metrics.histograms': { text: "`'explicit'` buckets, or `'exponential'` ones, of base 2." },
  'metrics.temporality': { text: "`'cumulative'`, `'delta'` or `'lowmemory'`: whether OTLP reports sums since the start, or differences." },
  'metrics.exemplars': { text: "`'trace_based'`, `'always_on'` or `'always_off'`: which measurements are kept as examples, with the ids of their trace and span." },
  'metrics.activeRequests': { text: '`http.server.active_requests`.' },
  'metrics.bodySizes': { text: '`http.server.request.body.size` and `http.server.response.body.size`, in bytes.' },
  'metrics.intervalMs': {
    text: 'Milliseconds from one export to the next, 100 at least; `Infinity` is never, but for flushes and the end. The first comes after half to one and a half of it, so that a fleet that starts at once does not export at once.'
  },
  limits: { text: 'How much a span may hold. More is dropped, and counted on the span.' },
  'limits.attributes': { text: "Attributes of a span. light-trace's own come first." },
  'limits.attributeValueLength': { text: 'Characters of a string value. Longer ones are cut.' },
  'limits.events': { text: 'Events of a span.' },
  'limits.links': { text: 'Links of a span.' },
  'config.trace.spanName': { text: 'A string, or `(request) => string`.', type: 'string | ((request: FastifyRequest) => string)' },
  'config.trace.attributes': {
    text: 'An object, or `(request) => attributes`. Added to those of the option `attributes`.',
    type: 'Attributes | ((request: FastifyRequest) => Attributes)'
  },
  'config.trace.spans': { text: 'Like the option `spans`, and instead of it.', type: 'SpansOptions | boolean' },
  'config.trace.sampler': { text: 'Like the option `sampler`, and instead of it.', type: 'SamplerOption' },
  'config.trace.slow': { text: 'Like the option `slow`, and instead of it. `{ afterMs: 0 }`: each request of the route.', type: 'SlowOptions | boolean' },
  'config.trace.metrics': { text: '`false`: [metrics](metrics.md) do not count this route.' },
  'config.trace.ignore': { text: 'Like the option `ignore`; `true` is the same as `trace: false`.', type: 'boolean | IgnoreOption' }
}

/** What index.d.ts says of a group's type, by its path. `isAlias`: a type, which a literal of another type may be given for. */
const TYPES = {
  exporter: { text: 'OTLP over HTTP with protobuf. Missing members come from the OTEL_EXPORTER_OTLP_* variables.' },
  keep: { text: 'Which unsampled requests are exported all the same.' },
  recorder: { text: 'What the recorder holds, and when it gives it away by itself; see docs/sampling.md.' },
  slow: { text: 'What is slow, see docs/slow.md.' },
  spans: { text: "Child spans of Fastify's own stages.", isAlias: true },
  'outbound.channels': { name: 'ChannelOptions', text: 'How the events of a TracingChannel of `node:diagnostics_channel` become spans.' },
  'outbound.fold': { text: 'Which calls share a span, see docs/outbound.md.' },
  outbound: { text: 'Spans and trace headers for outgoing calls, see docs/outbound.md.' },
  logs: { text: "See docs/logs.md. Levels are names of the logger's." },
  blockedLoop: { text: 'When the event loop counts as blocked, see docs/slow.md.' },
  buffer: { text: 'What waits to be sent, see docs/reliability.md.' },
  metrics: { text: "See docs/metrics.md. The names and units of metrics are those of OpenTelemetry's semantic conventions." },
  limits: { text: 'How much a span may hold. More is dropped and counted on the span.' },
  '': {
    name: 'LightTraceOptions',
    text: [
      'The options of `app.register(lightTrace, options)`. They win over the OTEL_* variables.',
      '@throws LT_ERR_OPTION_UNKNOWN for a name that resembles one of these, with that one. Other names are a warning:',
      "  fastify-cli and @fastify/autoload hand their users' flags to every plugin.",
      '@throws LT_ERR_OPTION_INVALID for a value that cannot be used; the message says what was received'
    ]
  },
  'config.trace': { name: 'RouteTraceOptions', text: "A route's `config.trace`. For missing members the plugin's options hold.", isAlias: true }
}

/**
 * The rows of docs/environment.md: variables of rows of the table, by their paths, or those that are read elsewhere, by their names.
 */
const VARIABLES = [
  { rows: ['disabled'], text: '`true`: no spans. The request context stays, and an incoming `traceparent` is passed on.' },
  { rows: ['serviceName'], text: 'The name of your service. See the option `serviceName`.' },
  { rows: ['resource'], text: 'Attributes of the resource: `k=v,k2=v2`, percent-encoded.' },
  {
    names: ['OTEL_RESOURCE_ATTRIBUTES_NODE_NAME', 'OTEL_RESOURCE_ATTRIBUTES_POD_NAME', 'OTEL_RESOURCE_ATTRIBUTES_POD_UID'],
    text: 'Set by the OpenTelemetry operator in Kubernetes: `k8s.node.name`, `k8s.pod.name`, `k8s.pod.uid`.'
  },
  { rows: ['logLevel'], text: "`error` or `none` silences light-trace's warnings." },
  { rows: ['propagators'], text: '`tracecontext`, `baggage`, `none`; also `b3` and `b3multi`, if `@opentelemetry/propagator-b3` is installed.' },
  {
    rows: ['sampler'],
    default: '`parentbased_always_on`, `1`',
    text: "One of OpenTelemetry's six: `always_on`, `always_off`, `traceidratio`, and the same with `parentbased_` before it. `_ARG` is the ratio for `traceidratio`."
  },
  { rows: ['exporter'], text: '`otlp`, `otlp/stdout`, `console` or `none`. If it lists several, the first that light-trace knows.' },
  {
    rows: ['exporter.url'],
    default: '`http://localhost:4318`',
    text: 'Where to send spans. The first one is used as it is, and `v1/traces` is appended to the second one.'
  },
  {
    names: ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'],
    default: '`http/protobuf`',
    text: '`grpc` and `http/json` are not supported: a warning is logged, and `http/protobuf` is used.'
  },
  { rows: ['exporter.headers'], text: 'Headers to send along: `k=v,k2=v2`, percent-encoded.' },
  { rows: ['exporter.compression'], text: '`none`, `gzip` or `zstd`.' },
  { rows: ['exporter.timeoutMs'], text: 'Milliseconds for one attempt. 0 is no limit.' },
  { rows: ['exporter.ca'], text: 'Path of a PEM file with the authorities to trust.' },
  { rows: ['exporter.cert'], text: "Path of a PEM file with the client's certificate." },
  { rows: ['exporter.key'], text: "Path of a PEM file with the client's key." },
  { rows: ['exporter.insecureHeaders'], text: '`true`: send headers that look like credentials over `http:` to other machines too.' },
  { rows: ['buffer.flushDelayMs'], text: 'Milliseconds that a span may wait for others. See `buffer.flushDelayMs`.' },
  { names: ['OTEL_BSP_EXPORT_TIMEOUT'], text: 'Milliseconds for one attempt. If `OTEL_EXPORTER_OTLP_TIMEOUT` is set too, the shorter one holds.' },
  {
    names: ['OTEL_BSP_MAX_QUEUE_SIZE'],
    default: 'none',
    text: 'Not used: it counts spans, and what waits is bounded in bytes by `buffer.maxBytes`. One line at `info` says so.'
  },
  { rows: ['batch.maxSpans'], default: '', text: 'The maximum number of spans in one export. Without it, exports are limited by bytes only.' },
  { rows: ['metrics.exporter'], default: 'off', text: '`otlp`, `otlp/stdout`, `prometheus`, or a list of them: [metrics](metrics.md) are on. `none`: they are not exported.' },
  { rows: ['metrics.intervalMs'], text: 'Milliseconds from one export of metrics to the next. See `metrics.intervalMs`.' },
  {
    names: ['OTEL_METRIC_EXPORT_TIMEOUT'],
    default: '`30000`',
    text: 'Milliseconds for one attempt to send metrics. The shorter of this and `OTEL_EXPORTER_OTLP_METRICS_TIMEOUT` holds.'
  },
  { rows: ['metrics.exemplars'], text: '`trace_based`, `always_on` or `always_off`. See `metrics.exemplars`.' },
  { names: ['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'], default: '`OTEL_EXPORTER_OTLP_ENDPOINT` + `v1/metrics`', text: 'Where to send metrics, used as it is.' },
  { names: exporterVariables('METRICS').slice(1), default: 'those without `METRICS`', text: 'For metrics what those with `TRACES` are for spans.' },
  { rows: ['metrics.temporality'], text: '`cumulative`, `delta` or `lowmemory`. See `metrics.temporality`.' },
  { rows: ['metrics.histograms'], default: '`explicit_bucket_histogram`', text: 'Or `base2_exponential_bucket_histogram`. See `metrics.histograms`.' },
  { rows: ['prometheus.host', 'prometheus.port'], text: 'Where `OTEL_METRICS_EXPORTER=prometheus` serves `/metrics`.' },
  { rows: ['logs.export'], default: 'off', text: '`otlp`, `otlp/stdout` or `console`: [log lines](logs.md) are exported.' },
  {
    rows: ['logRecords.flushDelayMs', 'logRecords.maxRecords'],
    names: ['OTEL_BLRP_EXPORT_TIMEOUT'],
    default: '`1000`, none, `30000`',
    text: 'For log records what those with `BSP` are for spans.'
  },
  { names: exporterVariables('LOGS'), default: 'those without `LOGS`', text: 'For log records what those with `TRACES` are for spans.' },
  { names: ['OTEL_BLRP_MAX_QUEUE_SIZE'], default: 'none', text: 'Not used: records share the buffer of spans. One line at `info` says so.' },
  { rows: ['logRecords.attributes', 'logRecords.attributeValueLength'], default: 'those of spans', text: 'Limits of a log record.' },
  { names: ['OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN'], text: '`logs` or `logs/dup`: exceptions are [log records](logs.md#exceptions-as-log-records).' },
  { rows: ['limits.attributes'], text: 'See `limits.attributes`.' },
  { rows: ['limits.attributeValueLength'], text: 'See `limits.attributeValueLength`.' },
  { rows: ['limits.events'], text: 'See `limits.events`.' },
  { rows: ['limits.links'], text: 'See `limits.links`.' },
  { rows: ['limits.attributesPerEvent'], text: 'Attributes of an event.' },
  { rows: ['limits.attributesPerLink'], text: 'Attributes of a link.' },
  {
    rows: ['knownMethods'],
    default: 'those of the conventions',
    text: 'A list of methods that replaces it: comma-separated, case-sensitive. Other methods are recorded as `_OTHER`.'
  },
  { rows: ['slow.afterMs'], text: "From how many milliseconds on a request's span says [what it waited for](slow.md). See `slow`." },
  {
    rows: ['blockedLoop'],
    default: '`false`',
    text: '`true`, `false` or milliseconds, 20 or more: [the line that blocked the event loop](slow.md#the-line-that-blocked-the-loop). See `blockedLoop`.'
  },
  { rows: ['ignore'], text: 'Comma-separated paths that get no spans. See `ignore`.' },
  {
    names: ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'],
    text: "The proxy between light-trace and the collector, by [Node's rules](https://nodejs.org/api/http.html#built-in-proxy-support), and only if Node uses proxies itself: `NODE_USE_ENV_PROXY=1` or `--use-env-proxy`. Otherwise one line at `info` says that they are not used. Lower-case names win. See [backends.md](backends.md#behind-a-proxy)."
  },
  {
    rows: ['environmentTrace'],
    text: 'The trace of the process that started this one, in the form of the W3C headers. It is the parent of spans that have none, such as those of a job, and never of requests.'
  },
  { names: ['NODE_OTEL', 'NODE_OTEL_ENDPOINT'], text: "Node's own tracer. A warning is logged, because every request would have two SERVER spans." },
  {
    names: ['OTEL_CONFIG_FILE', 'OTEL_EXPERIMENTAL_CONFIG_FILE'],
    text: "A file in OpenTelemetry's declarative form, [in place of all other `OTEL_*` variables](#a-configuration-file)."
  }
]

/** Those of another signal, which stand for the same as those of spans. */
function exporterVariables (signal) {
  const own = Object.values(table.OPTIONS.exporter.members).flatMap(({ variables = [] }) => variables).filter((name) => name.includes('_TRACES_'))
  return [own[0], 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', ...own.slice(1)].map((name) => name.replace('TRACES', signal))
}

module.exports = { OPTIONS, TYPES, VARIABLES }
