'use strict'

// Resolves the options of `register` and the environment to one frozen object in which every field is present. Code wins
// over environment. Wrong options throw; wrong variables are logged and ignored.

const path = require('node:path')
const { printable } = require('../runtime/report.js')
const {
  COUNT_MAX, CREDENTIAL, DURATION_MAX_MS, EMPTY, TOKEN, anyOf, attributes, boolean, bytes, callback, count, duration, headerNames,
  describeValue, isObject, listOf, literal, notNegative, object, orBoolean, orCallback, text
} = require('./checks.js')
const features = require('../features.js')
const { Environment } = require('./env.js')
const { checkExporter, resolveExporter } = require('./exporter.js')
const { checkIgnore, compileIgnore, ignoreFromEnvironment, isLikeExpression, checkSampler, samplerFromEnvironment } = require('./sampling.js')
const { serverlessPlatform, resolveResource } = require('./resource.js')

module.exports = { resolveOptions, resolveRouteOptions, resolveLive }

// Fastify's own, which it hands on to every plugin. fastify-cli and @fastify/autoload add those of their users.
const REGISTER_OPTIONS = ['prefix', 'logLevel', 'logSerializers']

const DEFAULT_CLOSE_TIMEOUT_MS = 5000
const BLOCKED_LOOP_VARIABLE = 'LIGHT_TRACE_BLOCKED_LOOP'
const DEFAULT_BLOCKED_AFTER_MS = 100
const BLOCKED_AFTER_MIN_MS = 20 // a timer of Node is late by some of them on any busy machine
const DEFAULT_BUFFER_BYTES = 32 * 1024 * 1024
const DEFAULT_FLUSH_DELAY_MS = 1000

// OpenTelemetry's defaults are 128 of each and a value of any length; 16 KiB hold any stack trace.
const DEFAULT_COUNT = 128
const DEFAULT_VALUE_LENGTH = 16384
const DEFAULT_FOLD_AFTER = 10
// A service that keeps more than this has an outage, of which a hundred traces a second show as much as all.
const DEFAULT_KEPT_PER_SECOND = 100

const DEFAULT_RECORDER_BYTES = 8 * 1024 * 1024 // some 20,000 spans
const DEFAULT_SNAPSHOT_SECONDS = 10

const SLOW_VARIABLE = 'LIGHT_TRACE_SLOW_AFTER_MS'
const DEFAULT_SLOW_MS = 250

const LOG_LEVELS = ['none', 'error', 'warn', 'info', 'debug', 'verbose', 'all']
const PROPAGATORS = ['tracecontext', 'baggage', 'b3', 'b3multi', 'none']
const STAGES = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse', 'onError']

const KINDS = Object.freeze({ __proto__: null, internal: 0, server: 1, client: 2, producer: 3, consumer: 4 })

const checkKeep = orBoolean(object({
  errors: boolean, aborted: boolean, slowerThanMs: notNegative('milliseconds'), asked: boolean, maxPerSecond: notNegative('requests a second')
}), { errors: true }, EMPTY)
const checkRecorder = orBoolean(object({
  maxBytes: bytes, seconds: notNegative('seconds'), errorsPerSecond: count, blockedLoop: boolean
}), EMPTY, false)
const checkSlow = orBoolean(object({ afterMs: notNegative('milliseconds') }), EMPTY, { afterMs: Infinity })
// true: the handler, which is what most want to see.
const checkSpans = orBoolean(object({ handler: boolean, hooks: listOf(literal(...STAGES)) }), { handler: true }, EMPTY)
const checkBlockedLoop = orBoolean(object({
  afterMs: anyOf(`a finite number of milliseconds, ${BLOCKED_AFTER_MIN_MS} or more`, (value) => Number.isFinite(value) && value >= BLOCKED_AFTER_MIN_MS)
}), EMPTY, false)
const checkFold = orBoolean(object({ after: anyOf('an integer from 1 on', (value) => Number.isSafeInteger(value) && value > 0) }), EMPTY, false)
const checkOutbound = orBoolean(object({
  http: boolean, undici: boolean, libraries: boolean, channels: checkChannels, propagateTo: callback, graphqlDocuments: boolean, fold: checkFold
}), EMPTY, { http: false, undici: false, libraries: false })
const checkBuffer = object({ maxBytes: bytes, flushDelayMs: duration })
const checkLimits = object({ attributes: count, attributeValueLength: count, events: count, links: count })

const checkChannel = object({
  kind: anyOf("'client', 'internal', 'producer', 'consumer', 'server' or a SpanKind",
    (value) => typeof value === 'string' && value in KINDS, (value) => Object.values(KINDS).includes(value)),
  name: orCallback(text),
  attributes: orCallback(attributes)
})

/** What to use for an option that others have, or that stands one level too high; undefined for other names. */
function meant (name) {
  const [hint] = ELSEWHERE.find(([, ...names]) => names.includes(name)) ?? []
  return hint ?? memberNamed(name.toLowerCase())
}

/** The group with a member of that name, if there is one: `handler`, `metricsPath`. */
function memberNamed (name) {
  const { checkMetrics, checkLogs } = signals()
  const own = { checkExporter, checkKeep, checkRecorder, checkSpans, checkOutbound, checkBuffer, checkLimits, checkSlow, checkBlockedLoop }
  for (const [check, { names }] of Object.entries({ ...own, checkMetrics, checkLogs })) {
    const group = check[5].toLowerCase() + check.slice(6)
    const member = names.find((member) => name === member.toLowerCase() || name === `${group}${member}`.toLowerCase())
    if (member !== undefined) return `${group}: { ${member} }`
  }
}

// What to use, and what it is called elsewhere.
const ELSEWHERE = [
  ["exporter: { url: 'http://localhost:4318' }", 'endpoint', 'url', 'collector', 'collectorUrl', 'otlpEndpoint', 'exporterUrl', 'urls', 'exporterUrls', 'dsn'],
  ['exporter: { headers, compression, timeoutMs }', 'headers', 'compression', 'timeout', 'timeoutMs'],
  ['sampler: 0.1', 'sampling', 'sampleRate', 'samplingRate', 'sampleRatio', 'samplingRatio', 'ratio', 'tracesSampleRate', 'traceIdRatio'],
  ['sampler: { perSecond: 10 }', 'perSecond', 'rateLimit', 'tracesPerSecond'],
  ['keep: { errors: true, slowerThanMs: 1000 }', 'keepErrors', 'keepSlow', 'slowerThanMs', 'errors'],
  ["ignore: ['/health']", 'exclude', 'excludePaths', 'excludeUrls'],
  ['serviceName', 'name', 'appName'],
  ["resource: { 'service.version': '1.2.3' }", 'serviceVersion', 'version', 'resourceAttributes'],
  ["resource: { 'deployment.environment.name': 'production' }", 'environment', 'env'],
  ["exporter: { url: 'http://localhost:4318' }, or spanProcessors", 'traceExporter', 'exporters'],
  ['OTEL_PROPAGATORS', 'propagators', 'propagator', 'textMapPropagator'],
  ['store', 'defaultStoreValues'],
  ['spanName', 'formatSpanName'],
  ['attributes', 'formatSpanAttributes'],
  ["replyHeader: 'server-timing'", 'propagateToReply'],
  ['outbound', 'instrumentations'],
  ['onStart or attributes', 'requestHook'],
  ['onEnd', 'responseHook'],
  ['OTEL_SDK_DISABLED=true, or do not register it', 'enabled', 'enable', 'disabled', 'disable']
]

const checkOptions = object({
  serviceName: text,
  resource: attributes,
  exporter: checkExporter,
  spanProcessors: listOf(anyOf('a SpanProcessor with onStart() and onEnd()', (value) => has(value, 'onStart') && has(value, 'onEnd'))),
  tracerProvider: anyOf('a TracerProvider with getTracer(), or false', (value) => value === false || has(value, 'getTracer')),
  registerGlobals: boolean,
  sampler: checkSampler,
  keep: checkKeep,
  recorder: checkRecorder,
  slow: checkSlow,
  maxSampledPerSecond: notNegative('spans'),
  configFile: text,
  ignore: checkIgnore,
  trustIncoming: anyOf('true, false or a function (request) => boolean', (value) => typeof value === 'boolean', (value) => typeof value === 'function'),
  requestHeaders: headerNames,
  responseHeaders: headerNames,
  spanName: callback,
  attributes: callback,
  onStart: callback,
  onEnd: callback,
  store: anyOf('an object or a function (request) => object', isObject, (value) => typeof value === 'function'),
  redactQuery: anyOf('an array of names, or a function (name) => boolean', (value) => typeof value === 'function', isNames),
  spans: checkSpans,
  outbound: checkOutbound,
  unrouted: boolean,
  codeLocation: boolean,
  clientErrors: boolean,
  logs: (path, value) => typeof value === 'boolean' ? value : signals().checkLogs(path, value),
  replyHeader: literal('server-timing', false),
  buffer: checkBuffer,
  closeTimeoutMs: duration,
  baggage: anyOf('an array of keys', isNames),
  blockedLoop: checkBlockedLoop,
  metrics: (path, value) => value === false ? false : signals().checkMetrics(path, value),
  limits: checkLimits
}, meant)

const checkRoute = orBoolean(object({
  spanName: orCallback(text),
  attributes: orCallback(attributes),
  spans: checkSpans,
  sampler: checkSampler,
  slow: checkSlow,
  metrics: boolean,
  ignore: orBoolean(checkIgnore, true, false)
}), EMPTY, { ignore: true })

function resolveOptions (userOptions = EMPTY, environment = undefined) {
  const { env, fromFile } = environmentOf(environment)
  const given = checkOptions('', userOptions, (name, hint) => {
    const what = hint === undefined ? 'it is ignored' : `it is ignored, and requests are traced as if it were not there. Use ${hint}`
    if (!REGISTER_OPTIONS.includes(name)) env.warn('LT_WARN_OPTION_UNKNOWN', `light-trace has no option '${printable(name, 64)}': ${what}`)
  })
  const resource = resolveResource({ __proto__: null, ...fromFile.resource, ...given.resource }, given.serviceName, env)
  const limits = resolveLimits(given.limits, env)
  const blockedLoop = resolveBlockedLoop(given.blockedLoop, env)
  const hasLogs = typeof given.logs === 'object' || env.find('OTEL_LOGS_EXPORTER', 'OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN') !== undefined
  const hasMetrics = given.metrics ?? env.find('OTEL_METRICS_EXPORTER') !== undefined
  warnAboutUnread(env)
  for (const pattern of given.ignore ?? []) if (isLikeExpression(pattern)) env.warn('LT_WARN_OPTION_MEANING', expressionWarning(pattern))
  return Object.freeze({
    disabled: env.boolean('OTEL_SDK_DISABLED') ?? false,
    serviceName: resource.attributes['service.name'],
    resource,
    exporter: resolveExporter(given.exporter, Boolean(given.spanProcessors ?? given.tracerProvider), env, hasMetrics || hasLogs),
    spanProcessors: given.spanProcessors === undefined ? null : Object.freeze(given.spanProcessors),
    tracerProvider: given.tracerProvider ?? null,
    registerGlobals: given.registerGlobals ?? true,
    buffer: resolveBuffer(given.buffer, env),
    // Unset, the size of a chunk in bytes decides how many spans go together.
    batch: Object.freeze({ maxSpans: env.integer(['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'], { min: 1 }) ?? Infinity }),
    closeTimeoutMs: given.closeTimeoutMs ?? DEFAULT_CLOSE_TIMEOUT_MS,
    sampler: given.sampler ?? samplerFromEnvironment(env),
    keep: resolveKeep(given.keep),
    recorder: resolveRecorder(given, blockedLoop, env),
    // What `keep` calls slow is slow, unless `slow` says otherwise.
    slow: Object.freeze({ afterMs: given.slow?.afterMs ?? given.keep?.slowerThanMs ?? env.integer([SLOW_VARIABLE]) ?? DEFAULT_SLOW_MS }),
    maxSampledPerSecond: given.maxSampledPerSecond ?? Infinity,
    configFile: given.configFile === undefined ? null : path.resolve(given.configFile),
    ignore: compileIgnore(given.ignore ?? ignoreFromEnvironment(env)),
    trustIncoming: given.trustIncoming ?? true,
    requestHeaders: capturedHeaders('requestHeaders', given.requestHeaders ?? fromFile.requestHeaders, env),
    responseHeaders: capturedHeaders('responseHeaders', given.responseHeaders ?? fromFile.responseHeaders, env),
    spanName: given.spanName ?? null,
    attributes: given.attributes ?? null,
    onStart: given.onStart ?? null,
    onEnd: given.onEnd ?? null,
    store: given.store ?? null,
    redactQuery: given.redactQuery ?? Object.freeze([]),
    spans: resolveSpans(given.spans),
    limits,
    knownMethods: knownMethodsFromEnvironment(env),
    outbound: resolveOutbound(given.outbound),
    propagators: propagatorsFromEnvironment(env),
    unrouted: given.unrouted ?? false,
    codeLocation: given.codeLocation ?? given.spanProcessors?.some((processor) => processor.wantsCodeLocation === true) ?? false,
    namesOpen: env.text('LIGHT_TRACE_VIEWER') !== undefined, // under `npx light-trace`: those that never end, at the application's end
    clientErrors: given.clientErrors ?? true,
    logs: given.logs !== false, // the ids on the application's own lines
    exportedLogs: hasLogs ? signals().resolveLogs(given, env, limits) : null,
    replyHeader: given.replyHeader || null,
    metrics: hasMetrics ? signals().resolveMetrics(given, env) : null,
    platform: serverlessPlatform(env),
    baggage: Object.freeze([...given.baggage ?? []]),
    blockedLoop,
    environmentTrace: environmentTrace(env),
    logLevel: env.oneOf(['OTEL_LOG_LEVEL'], LOG_LEVELS) ?? 'info',
    // Last: a copy of all that was found above.
    warnings: Object.freeze(env.warnAboutMisspelled().warnings.slice()),
    news: Object.freeze(env.news.slice())
  })
}

function expressionWarning (pattern) {
  return `ignore: ${describeValue(pattern)} is read as a path, in which * alone stands for anything. Write a regular expression without the quotes: ignore: [/^\\/health\\/.*/]`
}

/** The variables, or what stands for them in the file of OTEL_CONFIG_FILE; and what that says beside them. */
function environmentOf (variables) {
  const given = new Environment(variables)
  const file = given.text('OTEL_CONFIG_FILE', 'OTEL_EXPERIMENTAL_CONFIG_FILE')
  if (file === undefined) return { env: given, fromFile: EMPTY }
  const { values, fromFile, warnings } = features.environmentOf(file, given.values) ?? { values: given.values, fromFile: EMPTY, warnings: [] }
  const env = new Environment(values)
  for (const message of warnings) env.warn('LT_WARN_CONFIG_FILE', message)
  return { env, fromFile }
}

// Resolves a route's own `config.trace`; in each field null means: as the plugin's options say.
function resolveRouteOptions (value) {
  const given = value === undefined ? EMPTY : checkRoute('config.trace', value)
  return Object.freeze({
    off: given.ignore === true,
    spanName: given.spanName ?? null,
    attributes: given.attributes ?? null,
    spans: given.spans === undefined ? null : resolveSpans(given.spans),
    sampler: given.sampler ?? null,
    slow: given.slow ?? null,
    metrics: given.metrics ?? true,
    ignore: typeof given.ignore === 'boolean' ? null : compileIgnore(given.ignore)
  })
}

// The logger knows its levels, see AppLogs.checkLevels().
const checkLive = object({ sampler: checkSampler, keep: checkKeep, ignore: checkIgnore, logs: object({ level: text, unsampledLevel: text }) })

/** What `configFile` says; undefined where it says nothing. Throws where it is wrong. */
function resolveLive (value) {
  const { sampler, keep, ignore, logs } = checkLive('configFile', value)
  return { sampler, keep: keep && resolveKeep(keep), ignore: ignore && compileIgnore(ignore), logs }
}

// Of metrics and exported log lines, loaded where there are any.
function signals () { return require('./signals.js') }

// Nothing to keep is the same as no `keep`, and then unsampled requests record nothing.
function resolveKeep ({ errors = false, aborted = false, slowerThanMs = Infinity, asked = false, maxPerSecond = DEFAULT_KEPT_PER_SECOND } = EMPTY) {
  const isAsked = (errors || aborted || asked || slowerThanMs !== Infinity) && maxPerSecond > 0
  return isAsked ? Object.freeze({ errors, aborted, slowerThanMs, asked, maxPerSecond }) : null
}

function resolveRecorder ({ recorder: given, keep }, isLoopWatched, env) {
  const { maxBytes = DEFAULT_RECORDER_BYTES, seconds = DEFAULT_SNAPSHOT_SECONDS, errorsPerSecond = 0, blockedLoop = false } = given || EMPTY
  if (blockedLoop && !isLoopWatched) env.warn('LT_WARN_RECORDER', 'recorder.blockedLoop has no effect without the option blockedLoop')
  const keptPerSecond = keep?.maxPerSecond ?? DEFAULT_KEPT_PER_SECOND // for request.trace.keep(), where there is no `keep`
  return given ? Object.freeze({ maxBytes, seconds, errorsPerSecond, blockedLoop, keptPerSecond }) : null
}

// The names with PER are those of SDK 2.x.
function resolveLimits (given = EMPTY, env) {
  const from = (...names) => env.integer(names, { max: COUNT_MAX })
  return Object.freeze({
    attributes: given.attributes ?? from('OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', 'OTEL_ATTRIBUTE_COUNT_LIMIT') ?? DEFAULT_COUNT,
    attributeValueLength: given.attributeValueLength ??
      from('OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT', 'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT') ?? DEFAULT_VALUE_LENGTH,
    events: given.events ?? from('OTEL_SPAN_EVENT_COUNT_LIMIT') ?? DEFAULT_COUNT,
    links: given.links ?? from('OTEL_SPAN_LINK_COUNT_LIMIT') ?? DEFAULT_COUNT,
    attributesPerEvent: from('OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT', 'OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT') ?? DEFAULT_COUNT,
    attributesPerLink: from('OTEL_LINK_ATTRIBUTE_COUNT_LIMIT', 'OTEL_SPAN_ATTRIBUTE_PER_LINK_COUNT_LIMIT') ?? DEFAULT_COUNT
  })
}

function resolveBuffer (given = EMPTY, env) {
  if (given.maxBytes === undefined && env.text('OTEL_BSP_MAX_QUEUE_SIZE') !== undefined) {
    env.inform('OTEL_BSP_MAX_QUEUE_SIZE is ignored: it counts spans, and the buffer of light-trace is limited in bytes, by buffer.maxBytes')
  }
  return Object.freeze({
    maxBytes: given.maxBytes ?? DEFAULT_BUFFER_BYTES,
    flushDelayMs: given.flushDelayMs ?? env.integer(['OTEL_BSP_SCHEDULE_DELAY'], { max: DURATION_MAX_MS }) ?? DEFAULT_FLUSH_DELAY_MS
  })
}

function resolveBlockedLoop (given, env) {
  const asked = given ?? env.first([BLOCKED_LOOP_VARIABLE], `true, false or milliseconds, ${BLOCKED_AFTER_MIN_MS} or more`, (value) => {
    if (/^(?:true|false)$/i.test(value)) return value.toLowerCase() === 'true' && EMPTY
    if (/^[0-9]{1,9}$/.test(value) && Number(value) >= BLOCKED_AFTER_MIN_MS) return { afterMs: Number(value) }
  })
  return asked ? Object.freeze({ afterMs: Math.min(asked.afterMs ?? DEFAULT_BLOCKED_AFTER_MS, DURATION_MAX_MS) }) : null
}

function resolveSpans ({ handler = false, hooks = [] } = EMPTY) {
  return Object.freeze({ handler, hooks: Object.freeze([...new Set(hooks)]) })
}

// The names are the user's. `true` is for a channel of a library that light-trace knows, and leaves alone unless asked.
function checkChannels (path, value) {
  const checkOne = (path, value) => value === true ? {} : checkChannel(path, value)
  return object(Object.fromEntries((isObject(value) ? Object.keys(value) : []).map((name) => [name, checkOne])))(path, value)
}

function resolveOutbound ({ http = true, undici = true, libraries = true, channels = EMPTY, propagateTo = null, graphqlDocuments = false, fold = false } = EMPTY) {
  const resolved = Object.create(null)
  for (const [name, { kind = 'client', name: spanName = name, attributes = null }] of Object.entries(channels)) {
    resolved[name] = Object.freeze({ kind: KINDS[kind] ?? kind, name: spanName, attributes })
  }
  return Object.freeze({ http, undici, libraries, channels: Object.freeze(resolved), propagateTo, graphqlDocuments, fold: fold && Object.freeze({ after: fold.after ?? DEFAULT_FOLD_AFTER }) })
}

// Headers that become attributes: those that are named, and never those that carry credentials.
function capturedHeaders (option, names = [], env) {
  const denied = names.filter((name) => CREDENTIAL.test(name))
  for (const name of denied) env.warn('LT_WARN_HEADER_DENIED', `${option}: '${name}' carries credentials and is not recorded`)
  return Object.freeze([...new Set(names)].filter((name) => !denied.includes(name)))
}

function propagatorsFromEnvironment (env) {
  const names = env.namesOf('OTEL_PROPAGATORS', PROPAGATORS) ?? ['tracecontext', 'baggage']
  return Object.freeze(names.includes('none') ? [] : [...new Set(names)])
}

// Case-sensitive, and in place of the conventions' own list.
function knownMethodsFromEnvironment (env) {
  const name = 'OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS'
  const methods = env.listOf(name, 'a comma-separated list of methods', (method) => TOKEN.test(method)) ?? []
  return methods.length > 0 ? Object.freeze(methods) : null
}

function warnAboutUnread (env) {
  const node = env.find('NODE_OTEL', 'NODE_OTEL_ENDPOINT')
  if (node === undefined || (node.name === 'NODE_OTEL' && /^(?:0|false)$/i.test(node.value))) return
  env.warn('LT_WARN_NODE_OTEL', `${node.name} switches Node's own tracer on: each request gets a second SERVER span, and outgoing calls carry that tracer's traceparent. Unset it`)
}

// The parent of work outside of requests, see Tracer.startSpan.
function environmentTrace (env) {
  const traceparent = env.text('TRACEPARENT')
  return traceparent === undefined ? null : Object.freeze({ traceparent, tracestate: env.text('TRACESTATE') ?? '' })
}

function isNames (value) {
  return Array.isArray(value) && value.every((name) => typeof name === 'string' && name.trim() !== '')
}

// A class's methods are inherited, so these are not own properties.
function has (value, method) {
  return typeof value === 'object' && value !== null && typeof value[method] === 'function'
}
