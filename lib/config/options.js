'use strict'

// What `register` was given and what the environment says, as one frozen object in which every field is
// present. Code wins over environment. Wrong options throw; wrong variables are logged and ignored.

const { EMPTY, anyOf, attributes, boolean, callback, duration, listOf, literal, object, orCallback, text } = require('./checks')
const { Environment, readEnvironment } = require('./env')
const { checkExporter, resolveExporter } = require('./exporter')
const { checkBuffer, checkLimits, resolveBatch, resolveBuffer, resolveLimits } = require('./limits')
const { checkOutbound, resolveOutbound } = require('./outbound')
const { serverlessPlatform } = require('./platform')
const { resolveResource } = require('./resource')
const { checkSpans, resolveSpans } = require('./route-options')
const { printable } = require('../runtime/printable')

// Patterns, headers and samplers have files of their own, which are required where there are any.
const IGNORE_VARIABLE = 'OTEL_FASTIFY_IGNORE_PATHS'
const METRICS_VARIABLE = 'OTEL_METRICS_EXPORTER'

const DEFAULT_CLOSE_TIMEOUT_MS = 5000

const NO_NAMES = Object.freeze([])
const EVERY_TRACE = Object.freeze({ kind: 'always_on', ratio: 1, parentBased: true }) // parentbased_always_on
const LOG_LEVELS = ['none', 'error', 'warn', 'info', 'debug', 'verbose', 'all']
const PROPAGATORS = ['tracecontext', 'baggage', 'b3', 'b3multi']

// Fastify's own, which it hands on to every plugin. fastify-cli and @fastify/autoload add the flags and options of their users.
const REGISTER_OPTIONS = ['prefix', 'logLevel', 'logSerializers']

const checkOptions = object({
  serviceName: text,
  resource: attributes,
  exporter: checkExporter,
  spanProcessors: listOf(anyOf('a SpanProcessor with onStart() and onEnd()', (value) => has(value, 'onStart') && has(value, 'onEnd'))),
  tracerProvider: anyOf('a TracerProvider with getTracer(), or false', (value) => value === false || has(value, 'getTracer')),
  registerGlobals: boolean,
  sampler: (...args) => require('./sampler').checkSampler(...args),
  keep: checkKeep,
  maxSampledPerSecond: anyOf('a number of spans, 0 or more', (value) => typeof value === 'number' && value >= 0),
  ignore: (...args) => require('./ignore').checkIgnore(...args),
  trustIncoming: orCallback(boolean),
  requestHeaders: checkHeaderNames,
  responseHeaders: checkHeaderNames,
  spanName: callback,
  attributes: callback,
  onStart: callback,
  onEnd: callback,
  store: anyOf('an object or a function (request) => object', isObject, (value) => typeof value === 'function'),
  redactQuery: anyOf('an array of names, or a function (name) => boolean', (value) => typeof value === 'function', isNames),
  spans: checkSpans,
  outbound: checkOutbound,
  unrouted: boolean,
  logs: boolean,
  replyHeader: literal('traceresponse', 'server-timing', false),
  buffer: checkBuffer,
  closeTimeoutMs: duration,
  baggage: anyOf('an array of keys', isNames),
  metrics: (path, value) => value === false ? false : require('./metrics').checkMetrics(path, value),
  limits: checkLimits
})

const checkKeepMembers = object({
  errors: boolean,
  slowerThanMs: anyOf('a number of milliseconds, 0 or more', (value) => typeof value === 'number' && value >= 0)
})

module.exports = { resolveOptions }

function resolveOptions (userOptions = EMPTY, environment = readEnvironment()) {
  const env = new Environment(environment)
  const given = checkOptions('', userOptions, (name) => {
    if (!REGISTER_OPTIONS.includes(name)) env.warn('LT_WARN_OPTION_UNKNOWN', `light-trace has no option ${printable(name, 64)}: it is ignored`)
  })
  const resource = resolveResource(given.resource, given.serviceName, env)
  tellUnread(env)
  return Object.freeze({
    disabled: env.boolean('OTEL_SDK_DISABLED') ?? false,
    serviceName: resource.attributes['service.name'],
    resource,
    ...waysOut(given, env),
    ...sampling(given, env),
    ...recording(given, env),
    outbound: resolveOutbound(given.outbound),
    propagators: propagatorsFromEnvironment(env),
    unrouted: given.unrouted ?? false,
    logs: given.logs ?? true,
    replyHeader: given.replyHeader || null,
    metrics: metricsFor(given, env),
    platform: serverlessPlatform(env),
    baggage: Object.freeze([...given.baggage ?? []]),
    environmentTrace: environmentTrace(env),
    logLevel: env.oneOf(['OTEL_LOG_LEVEL'], LOG_LEVELS) ?? 'info',
    // Last: a copy of all that was found above.
    warnings: Object.freeze(env.warnings.slice()),
    news: Object.freeze(env.news.slice())
  })
}

function waysOut (given, env) {
  return {
    exporter: resolveExporter(given.exporter, Boolean(given.spanProcessors ?? given.tracerProvider), env),
    spanProcessors: given.spanProcessors === undefined ? null : Object.freeze(given.spanProcessors),
    tracerProvider: given.tracerProvider ?? null,
    registerGlobals: given.registerGlobals ?? true,
    buffer: resolveBuffer(given.buffer, env),
    batch: resolveBatch(env),
    closeTimeoutMs: given.closeTimeoutMs ?? DEFAULT_CLOSE_TIMEOUT_MS
  }
}

// Off, nothing of them is loaded.
function metricsFor (given, env) {
  if (given.metrics === false || (given.metrics === undefined && env.text(METRICS_VARIABLE) === undefined)) return null
  return require('./metrics').resolveMetrics(given, env, METRICS_VARIABLE)
}

function sampling (given, env) {
  return {
    sampler: given.sampler ?? samplerFromEnvironment(env),
    keep: resolveKeep(given.keep),
    maxSampledPerSecond: given.maxSampledPerSecond ?? Infinity,
    ignore: resolveIgnore(given.ignore, env),
    trustIncoming: given.trustIncoming ?? true
  }
}

function samplerFromEnvironment (env) {
  return env.text('OTEL_TRACES_SAMPLER') === undefined ? EVERY_TRACE : require('./sampler').samplerFromEnvironment(env)
}

function resolveIgnore (given, env) {
  if (given === undefined && env.text(IGNORE_VARIABLE) === undefined) return null
  const { compileIgnore, ignoreFromEnvironment } = require('./ignore')
  return compileIgnore(given ?? ignoreFromEnvironment(env, IGNORE_VARIABLE))
}

function recording (given, env) {
  return {
    requestHeaders: headersFor('requestHeaders', given.requestHeaders, env),
    responseHeaders: headersFor('responseHeaders', given.responseHeaders, env),
    spanName: given.spanName ?? null,
    attributes: given.attributes ?? null,
    onStart: given.onStart ?? null,
    onEnd: given.onEnd ?? null,
    store: given.store ?? null,
    redactQuery: given.redactQuery ?? NO_NAMES,
    spans: resolveSpans(given.spans),
    limits: resolveLimits(given.limits, env),
    knownMethods: knownMethodsFromEnvironment(env)
  }
}

function checkHeaderNames (path, value) {
  return require('./captured-headers').checkHeaderNames(path, value)
}

function headersFor (option, names, env) {
  return names === undefined ? NO_NAMES : require('./captured-headers').capturedHeaders(option, names, env)
}

function checkKeep (path, value) {
  if (value === true) return { errors: true }
  return value === false ? EMPTY : checkKeepMembers(path, value)
}

// Nothing to keep is the same as no `keep`, and then unsampled requests record nothing.
function resolveKeep ({ errors = false, slowerThanMs = Infinity } = EMPTY) {
  return errors || slowerThanMs !== Infinity ? Object.freeze({ errors, slowerThanMs }) : null
}

function propagatorsFromEnvironment (env) {
  const name = 'OTEL_PROPAGATORS'
  const names = env.list(name)?.map((item) => item.toLowerCase())
  if (names === undefined) return Object.freeze(['tracecontext', 'baggage'])
  if (names.includes('none')) return Object.freeze([])
  const known = names.filter((item) => PROPAGATORS.includes(item) || env.ignored(name, item, `of ${PROPAGATORS.join(', ')}, none`))
  return Object.freeze([...new Set(known)])
}

// Case-sensitive, and in place of the conventions' own list.
function knownMethodsFromEnvironment (env) {
  const name = 'OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS'
  if (env.text(name) === undefined) return null
  const { TOKEN } = require('./captured-headers')
  const methods = env.list(name).filter((method) => TOKEN.test(method) || env.ignored(name, method, 'a comma-separated list of methods'))
  return methods.length > 0 ? Object.freeze(methods) : null
}

// Silence would let somebody believe that the file counts.
function tellUnread (env) {
  const file = env.find('OTEL_CONFIG_FILE', 'OTEL_EXPERIMENTAL_CONFIG_FILE')
  if (file !== undefined) env.warn('LT_WARN_CONFIG_FILE', `${file.name} is not read: use options and the other OTEL_* variables`)
  const node = env.find('NODE_OTEL', 'NODE_OTEL_ENDPOINT')
  if (node === undefined || (node.name === 'NODE_OTEL' && /^(?:0|false)$/i.test(node.value))) return
  env.warn('LT_WARN_NODE_OTEL', `${node.name} switches Node's own tracer on: each request would have two SERVER spans, and outgoing calls its traceparent`)
}

// The parent of work outside of requests, see Tracer.startSpan.
function environmentTrace (env) {
  const traceparent = env.text('TRACEPARENT')
  return traceparent === undefined ? null : Object.freeze({ traceparent, tracestate: env.text('TRACESTATE') ?? '' })
}

function isObject (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNames (value) {
  return Array.isArray(value) && value.every((name) => typeof name === 'string' && name.trim() !== '')
}

// A class's methods are inherited, so these are not own properties.
function has (value, method) {
  return typeof value === 'object' && value !== null && typeof value[method] === 'function'
}
