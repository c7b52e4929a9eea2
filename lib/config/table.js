'use strict'

// All settings, one row each (OptionRow in types.d.ts describes a row). Checks, settings and the members that `configFile` may change are
// made from these rows. `npm run docs:tables` also makes the tables of docs/options.md and docs/environment.md from them, and the options
// in index.d.ts.

const path = require('node:path')
const {
  CREDENTIAL, DURATION_MAX_MS, EMPTY, TOKEN, anyOf, atLeastOne, attributes, boolean, bytes, callback, count, duration, headerNames,
  isObject, listOf, literal, notNegative, object, orBoolean, orCallback, text
} = require('./checks.js')
const { omittedKey } = require('./attribute-keys.js')
const { EXPORTER, EXPORTER_KINDS, checkExporter } = require('./exporter.js')
const { checkOf, group, settle } = require('./rows.js')
const { SAMPLER, checkIgnore, compileIgnore, ignoreFromEnvironment } = require('./sampling.js')

const NONE = Object.freeze([])

const BLOCKED_AFTER_MIN_MS = 20 // on any busy machine, Node's timers are late by some milliseconds
const INTERVAL_MIN_MS = 100 // without this minimum, a value in the wrong unit could send hundreds of times a second

const PROPAGATORS = ['tracecontext', 'baggage', 'b3', 'b3multi', 'none']
const STAGES = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse', 'onError']
const AGGREGATIONS = { __proto__: null, explicit_bucket_histogram: 'explicit', base2_exponential_bucket_histogram: 'exponential' }
const SPAN_KINDS = Object.freeze({ __proto__: null, internal: 0, server: 1, client: 2, producer: 3, consumer: 4 })

const LEVEL = "the name of one of the logger's levels"
const isLevel = (value) => typeof value === 'string' && value.trim() !== ''
const level = anyOf(LEVEL, isLevel)

// A group that is off by default.
const ASKED = { whenTrue: EMPTY, whenFalse: false }

const CHANNEL = {
  kind: { check: anyOf("'client', 'internal', 'producer', 'consumer', 'server' or a SpanKind", isKind), default: 'client', resolve: (kind) => SPAN_KINDS[kind] ?? kind },
  name: { check: orCallback(text) },
  attributes: { check: orCallback(attributes) }
}

// Shared by the plugin and its routes.
const SLOW = { whenTrue: EMPTY, whenFalse: { afterMs: Infinity }, default: EMPTY }
const SLOW_AFTER = {
  afterMs: { check: notNegative('milliseconds'), default: 250, variables: ['LIGHT_TRACE_SLOW_AFTER_MS'], read: (names, env) => env.integer(names) }
}
// true: the handler, which most users want to see.
const SPANS = { whenTrue: { handler: true }, whenFalse: EMPTY }
const STAGE_SPANS = {
  handler: { check: boolean, default: false },
  hooks: { check: listOf(literal(...STAGES)), default: NONE, resolve: (hooks) => Object.freeze([...new Set(hooks)]) }
}

const OPTIONS = {
  enabled: { check: boolean, default: true, variables: ['OTEL_SDK_DISABLED'], read: readEnabled },
  serviceName: { check: text, variables: ['OTEL_SERVICE_NAME'], elsewhere: ['name', 'appName'] },
  resource: { check: attributes, variables: ['OTEL_RESOURCE_ATTRIBUTES'] },
  exporter: EXPORTER,
  spanProcessors: { check: listOf(anyOf('a SpanProcessor with onStart() and onEnd()', (value) => has(value, 'onStart') && has(value, 'onEnd'))), resolve: Object.freeze },
  tracerProvider: { check: anyOf('a TracerProvider with getTracer(), or false', (value) => value === false || has(value, 'getTracer')) },
  registerGlobals: { check: boolean, default: true },
  sampler: SAMPLER,
  keep: group({ ...ASKED, whenTrue: { errors: true }, live: true, resolve: orNothingToKeep }, {
    errors: { check: boolean, default: false },
    aborted: { check: boolean, default: false },
    slow: { check: boolean, default: false }, // as defined by the option `slow` below, or by the route's
    asked: { check: boolean, default: false },
    // A service that exceeds this has an outage, and a hundred traces a second show as much of it as all traces would.
    maxPerSecond: { check: notNegative('requests a second'), default: 100 },
    recorder: group({ ...ASKED, live: false, resolve: withKeep }, {
      maxBytes: { check: bytes, default: 8 * 1024 * 1024 }, // about 20,000 spans
      seconds: { check: notNegative('seconds'), default: 10 },
      errorsPerSecond: { check: count, default: 0 },
      blockedLoop: { check: boolean, default: false }
    })
  }),
  slow: group({ ...SLOW, live: true }, {
    ...SLOW_AFTER,
    blockedLoop: group({ ...ASKED, live: false, variables: ['LIGHT_TRACE_BLOCKED_LOOP'], read: readBlockedLoop }, {
      afterMs: {
        check: anyOf(`a finite number of milliseconds, ${BLOCKED_AFTER_MIN_MS} or more`, (value) => Number.isFinite(value) && value >= BLOCKED_AFTER_MIN_MS),
        default: 100,
        resolve: (ms) => Math.min(ms, DURATION_MAX_MS)
      }
    })
  }),
  configFile: { check: text, resolve: (file) => path.resolve(file) },
  ignore: { check: checkIgnore, variables: ['OTEL_FASTIFY_IGNORE_PATHS'], read: ignoreFromEnvironment, live: true, resolve: compileIgnore },
  trustIncoming: { check: orCallback(anyOf('true, false or a function (request) => boolean', (value) => typeof value === 'boolean')), default: true },
  headers: group({ default: EMPTY, others: 'headers that go with each export are `exporter.headers`' }, {
    request: capturedHeaders('request'),
    response: capturedHeaders('response'),
    baggage: { check: listOfNames('an array of keys'), default: NONE, resolve: uniqueNames },
    serverTiming: { check: boolean, default: false, resolve: (isSent) => isSent ? 'server-timing' : null }
  }),
  redactQuery: { check: orCallback(listOfNames('an array of names, or a function (name) => boolean')), default: NONE },
  spanName: { check: callback, elsewhere: ['formatSpanName'] },
  attributes: { check: orCallback(attributes), elsewhere: ['formatSpanAttributes'] },
  omitAttributes: { check: listOf(omittedKey), default: NONE, resolve: Object.freeze },
  inheritAttributes: { check: listOfNames('an array of keys'), default: NONE, resolve: uniqueNames },
  onStart: { check: callback },
  onEnd: { check: callback, elsewhere: ['responseHook'] },
  store: { check: orCallback(anyOf('an object or a function (request) => object', isObject)), elsewhere: ['defaultStoreValues'] },
  spans: group({ ...SPANS, default: EMPTY }, {
    ...STAGE_SPANS,
    unrouted: { check: boolean, default: false },
    codeLocation: { check: boolean, default: false, read: (names, env, { given }) => given.spanProcessors?.some((processor) => processor.wantsCodeLocation === true) },
    clientErrors: { check: boolean, default: true }
  }),
  outbound: group({ whenTrue: EMPTY, whenFalse: { http: false, undici: false, libraries: false }, default: EMPTY, elsewhere: ['instrumentations'] }, {
    http: { check: boolean, default: true },
    undici: { check: boolean, default: true },
    libraries: { check: boolean, default: true },
    channels: { check: checkChannels, default: EMPTY, resolve: resolveChannels, members: CHANNEL },
    propagateTo: { check: callback },
    graphqlDocuments: { check: boolean, default: false },
    fold: { ...ASKED, default: false, members: { after: { check: atLeastOne, default: 10 } } }
  }),
  // true: only the ids, and variables still apply. false: nothing, whatever the variables say.
  logs: group({ whenTrue: true, whenFalse: false, default: true }, {
    ids: { check: boolean, default: true },
    export: { check: orBoolean(exporterOf(EXPORTER_KINDS, 'true', 'false'), true, false), default: false, variables: ['OTEL_LOGS_EXPORTER'] },
    level: { check: level, live: true }, // null: whatever the logger writes
    unsampledLevel: { check: level, default: 'warn', live: true },
    maxPerSecond: { check: notNegative('lines a second'), default: 10_000 }, // per level: more than a person can read or wants to pay for
    buffer: { check: anyOf(`${LEVEL}, or false`, isLevel, (value) => value === false), resolve: (name) => name || null } // the lowest level of lines that are held with their request
  }),
  buffer: group({ default: EMPTY }, {
    maxBytes: { check: bytes, default: 32 * 1024 * 1024 },
    flushDelayMs: { check: duration, default: 1000, variables: ['OTEL_BSP_SCHEDULE_DELAY'] },
    closeTimeoutMs: { check: duration, default: 5000 }
  }),
  metrics: group({ ...ASKED }, {
    exporter: { check: exporterOf(['otlp', 'otlp/stdout', 'none']), variables: ['OTEL_METRICS_EXPORTER'] },
    path: { check: anyOf("a path that begins with '/'", (value) => typeof value === 'string' && value.startsWith('/')) },
    runtime: { check: boolean, default: false },
    attributes: { check: callback },
    buckets: { check: anyOf('an array of ascending numbers', areBounds), resolve: (buckets) => Object.freeze(buckets.slice()) },
    histograms: {
      check: literal('explicit', 'exponential'),
      default: 'explicit',
      variables: ['OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION'],
      read: (names, env) => AGGREGATIONS[env.oneOf(names, Object.keys(AGGREGATIONS))]
    },
    temporality: { check: literal('cumulative', 'delta', 'lowmemory'), default: 'cumulative', variables: ['OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE'] },
    exemplars: { check: literal('trace_based', 'always_on', 'always_off'), default: 'trace_based', variables: ['OTEL_METRICS_EXEMPLAR_FILTER'] },
    activeRequests: { check: boolean, default: false },
    bodySizes: { check: boolean, default: false },
    intervalMs: {
      check: duration,
      default: 60_000,
      variables: ['OTEL_METRIC_EXPORT_INTERVAL'],
      read: (names, env) => env.integer(names, { min: 1, max: DURATION_MAX_MS }),
      resolve: (ms) => Math.max(INTERVAL_MIN_MS, ms)
    }
  }),
  // OpenTelemetry's defaults are 128 of each, and values of any length. 16 KiB hold any stack trace. Variables with PER are those of SDK 2.x.
  limits: group({ default: EMPTY, resolve: withOthers }, {
    attributes: { check: count, default: 128, variables: ['OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', 'OTEL_ATTRIBUTE_COUNT_LIMIT'] },
    attributeValueLength: { check: count, default: 16384, variables: ['OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT', 'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT'] },
    events: { check: count, default: 128, variables: ['OTEL_SPAN_EVENT_COUNT_LIMIT'] },
    links: { check: count, default: 128, variables: ['OTEL_SPAN_LINK_COUNT_LIMIT'] },
    sampledPerSecond: { check: notNegative('spans'), default: Infinity }
  })
}

// Members that become top-level settings. The setting has the name of the old top-level option, which is still accepted.
const MOVED = {
  recorder: ['keep', 'recorder'],
  blockedLoop: ['slow', 'blockedLoop'],
  requestHeaders: ['headers', 'request'],
  responseHeaders: ['headers', 'response'],
  baggage: ['headers', 'baggage'],
  replyHeader: ['headers', 'serverTiming'],
  unrouted: ['spans', 'unrouted'],
  codeLocation: ['spans', 'codeLocation'],
  clientErrors: ['spans', 'clientErrors'],
  closeTimeoutMs: ['buffer', 'closeTimeoutMs'],
  maxSampledPerSecond: ['limits', 'sampledPerSecond']
}

// Settings that only variables can change.
const VARIABLES = {
  logLevel: { check: literal('none', 'error', 'warn', 'info', 'debug', 'verbose', 'all'), default: 'info', variables: ['OTEL_LOG_LEVEL'] },
  propagators: { default: Object.freeze(['tracecontext', 'baggage']), variables: ['OTEL_PROPAGATORS'], read: readPropagators },
  knownMethods: { variables: ['OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS'], read: readMethods },
  environmentTrace: { variables: ['TRACEPARENT', 'TRACESTATE'], read: readTrace },
  // If unset, the chunk size in bytes decides how many spans are sent together.
  batch: { default: EMPTY, members: { maxSpans: { check: atLeastOne, default: Infinity, variables: ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'] } } }
}

const OTHER_LIMITS = {
  attributesPerEvent: { check: count, default: 128, variables: ['OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT', 'OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT'] },
  attributesPerLink: { check: count, default: 128, variables: ['OTEL_LINK_ATTRIBUTE_COUNT_LIMIT', 'OTEL_SPAN_ATTRIBUTE_PER_LINK_COUNT_LIMIT'] }
}

const PROMETHEUS = {
  host: { check: text, default: 'localhost', variables: ['OTEL_EXPORTER_PROMETHEUS_HOST'] },
  port: { default: 9464, variables: ['OTEL_EXPORTER_PROMETHEUS_PORT'], read: (names, env) => env.integer(names, { max: 65535 }) }
}

// For log records. If one of these is not set, the options for spans apply.
const LOG_RECORDS = {
  flushDelayMs: { check: duration, variables: ['OTEL_BLRP_SCHEDULE_DELAY'] },
  maxRecords: { check: atLeastOne, default: Infinity, variables: ['OTEL_BLRP_MAX_EXPORT_BATCH_SIZE'] },
  attributes: { check: count, variables: ['OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT'] },
  attributeValueLength: { check: count, variables: ['OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT'] }
}

// A route's `config.trace`. null means the same as the plugin's options.
const ROUTE = {
  spanName: { check: orCallback(text) },
  attributes: { check: orCallback(attributes) },
  spans: group(SPANS, STAGE_SPANS),
  sampler: { check: SAMPLER.check },
  slow: { check: checkOf(group(SLOW, SLOW_AFTER)) },
  metrics: { check: boolean, default: true },
  ignore: { check: orBoolean(checkIgnore, true, false), resolve: (ignore) => typeof ignore === 'boolean' ? null : compileIgnore(ignore) }
}

module.exports = { LOG_RECORDS, MOVED, OPTIONS, OTHER_LIMITS, PROMETHEUS, ROUTE, VARIABLES }

function readEnabled (names, env) {
  const disabled = env.boolean(...names)
  return disabled === undefined ? undefined : !disabled
}

// A `keep` that keeps nothing is the same as no `keep`, so that unsampled requests record nothing.
function orNothingToKeep (keep) {
  const { errors, aborted, slow, asked, maxPerSecond } = keep
  return (errors || aborted || slow || asked) && maxPerSecond > 0 ? keep : null
}

// `keptPerSecond` limits request.trace.keep() if there is no `keep`.
function withKeep (recorder, { given }) {
  return Object.freeze({ ...recorder, keptPerSecond: given.keep?.maxPerSecond ?? OPTIONS.keep.members.maxPerSecond.default })
}

function withOthers (limits, context) {
  return Object.freeze({ ...limits, ...settle(OTHER_LIMITS, EMPTY, context) })
}

function readBlockedLoop (names, env) {
  return env.firstValid(names, `true, false or milliseconds, ${BLOCKED_AFTER_MIN_MS} or more`, (value) => {
    if (/^(?:true|false)$/i.test(value)) return value.toLowerCase() === 'true' && EMPTY
    if (/^[0-9]{1,9}$/.test(value) && Number(value) >= BLOCKED_AFTER_MIN_MS) return { afterMs: Number(value) }
  })
}

function isKind (value) {
  return typeof value === 'string' ? value in SPAN_KINDS : Object.values(SPAN_KINDS).includes(value)
}

// Users choose the names. `true` enables a library's channel that light-trace knows but does not trace by default.
function checkChannels (path, value) {
  const checkOne = (path, value) => value === true ? {} : checkOf({ members: CHANNEL })(path, value)
  return object(Object.fromEntries((isObject(value) ? Object.keys(value) : []).map((name) => [name, checkOne])))(path, value)
}

function resolveChannels (channels, context) {
  const resolved = Object.create(null)
  for (const [name, channel] of Object.entries(channels)) resolved[name] = settle(CHANNEL, { name, ...channel }, context)
  return Object.freeze(resolved)
}

// Headers that become attributes: the named ones, except those that carry credentials.
function capturedHeaders (member) {
  const resolve = (names, { env }) => {
    const denied = names.filter((name) => CREDENTIAL.test(name))
    for (const name of denied) env.warn('LT_WARN_HEADER_DENIED', `headers.${member}: '${name}' carries credentials and is not recorded`)
    return Object.freeze([...new Set(names)].filter((name) => !denied.includes(name)))
  }
  return { check: headerNames, default: NONE, read: (variables, env, { fromFile }) => fromFile.headers?.[member], resolve }
}

function areBounds (value) {
  return Array.isArray(value) && value.length > 0 && value.every((bound, index) => Number.isFinite(bound) && (index === 0 || bound > value[index - 1]))
}

function exporterOf (kinds, ...others) {
  const check = anyOf(`${[...others, ...kinds.map((kind) => `'${kind}'`)].join(', ')} or an object with a url`, (value) => isObject(value) || kinds.includes(value))
  return (path, value) => checkExporter(path, check(path, value))
}

function readPropagators ([name], env) {
  const names = env.namesOf(name, PROPAGATORS)
  return names && Object.freeze(names.includes('none') ? [] : [...new Set(names)])
}

// Case-sensitive. Replaces the list of the semantic conventions.
function readMethods ([name], env) {
  const methods = env.listOf(name, 'a comma-separated list of methods', (method) => TOKEN.test(method)) ?? []
  return methods.length > 0 ? Object.freeze(methods) : null
}

// The parent of spans outside requests, see Tracer.startSpan.
function readTrace ([parent, state], env) {
  const traceparent = env.text(parent)
  return traceparent === undefined ? null : Object.freeze({ traceparent, tracestate: env.text(state) ?? '' })
}

function uniqueNames (names) { return Object.freeze([...new Set(names)]) }

function listOfNames (expected) {
  return anyOf(expected, (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && name.trim() !== ''))
}

// Not Object.hasOwn: a class's methods are inherited.
function has (value, method) {
  return typeof value === 'object' && value !== null && typeof value[method] === 'function'
}
