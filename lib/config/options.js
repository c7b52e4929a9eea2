'use strict'

// Resolves the options of `register` and the environment to one frozen object with all fields present. Options override variables. Wrong
// options throw. Wrong variables are logged and ignored.

const { printable } = require('../runtime/report.js')
const { EMPTY, describeValue, literal } = require('./checks.js')
const features = require('../features.js')
const { Environment } = require('./env.js')
const { resolveExporter } = require('./exporter.js')
const { serverlessPlatform, resolveResource } = require('./resource.js')
const { checkOf, liveRows, settle, settled } = require('./rows.js')
const { isLikeExpression } = require('./sampling.js')
const { MOVED, OPTIONS, ROUTE, VARIABLES } = require('./table.js')

module.exports = { resolveOptions, resolveRouteOptions, resolveLive }

// Fastify's own options, which it passes to every plugin. fastify-cli and @fastify/autoload add those of their users.
const REGISTER_OPTIONS = ['prefix', 'logLevel', 'logSerializers']

/** Returns what to use instead of another library's option, or of one that is a level too high (`handler`, `metricsPath`), or undefined. */
function meant (name) {
  const [hint] = ELSEWHERE.find(([, ...names]) => names.includes(name)) ?? []
  if (hint !== undefined) return hint
  const [group, moved] = Object.entries(MOVED).find(([before]) => before.toLowerCase() === name.toLowerCase())?.[1] ?? []
  if (group !== undefined) return `${group}: { ${moved} }`
  for (const [option, { elsewhere = [], members = {} }] of Object.entries(/** @type {Record<string, OptionRow>} */ (OPTIONS))) {
    if (elsewhere.includes(name)) return option
    const member = Object.keys(members).find((member) => [member, option + member].some((known) => known.toLowerCase() === name.toLowerCase()))
    if (member !== undefined) return `${option}: { ${member} }`
  }
}

// For options whose name alone is not a helpful hint: the hint, then the names in other libraries.
const ELSEWHERE = [
  ["exporter: { url: 'http://localhost:4318' }", 'endpoint', 'url', 'collector', 'collectorUrl', 'otlpEndpoint', 'exporterUrl', 'urls', 'exporterUrls', 'dsn'],
  ['exporter: { headers, compression, timeoutMs }', 'compression', 'timeout', 'timeoutMs'],
  ['sampler: 0.1', 'sampling', 'sampleRate', 'samplingRate', 'sampleRatio', 'samplingRatio', 'ratio', 'tracesSampleRate', 'traceIdRatio'],
  ['sampler: { perSecond: 10 }', 'perSecond', 'rateLimit', 'tracesPerSecond'],
  ['keep: { errors: true, slow: true }', 'keepErrors', 'keepSlow', 'errors'],
  ['keep: { errors: true, slow: true } and slow: { afterMs: 1000 }', 'slowerThanMs', 'keep.slowerThanMs', 'configFile.keep.slowerThanMs'],
  ["ignore: ['/health']", 'exclude', 'excludePaths', 'excludeUrls'],
  ["resource: { 'service.version': '1.2.3' }", 'serviceVersion', 'version', 'resourceAttributes'],
  ["resource: { 'deployment.environment.name': 'production' }", 'environment', 'env'],
  ["exporter: { url: 'http://localhost:4318' }, or spanProcessors", 'traceExporter', 'exporters'],
  ['OTEL_PROPAGATORS', 'propagators', 'propagator', 'textMapPropagator'],
  ['headers: { serverTiming: true }', 'propagateToReply'],
  ['onStart or attributes', 'requestHook'],
  ['enabled: false', 'disabled', 'disable']
]

const checkOptions = checkOf({ members: OPTIONS }, meant, { ...movedRows(), replyHeader: { check: literal('server-timing', false) } })
const checkRoute = checkOf({ members: ROUTE, whenTrue: EMPTY, whenFalse: { ignore: true } })

// Not in ROWS: options that depend on more than their own row, and options that are read only on demand.
const { serviceName, resource, exporter, logs, metrics, headers, ...ROWS } = { ...OPTIONS, ...VARIABLES, ...withoutMoved(), ...movedRows() }

/** @returns {Record<keyof typeof MOVED, OptionRow>} the rows of top-level settings whose options are members of a group */
function movedRows () {
  return /** @type {any} */ (Object.fromEntries(Object.entries(MOVED).map(([name, [group, member]]) => [name, OPTIONS[group].members[member]])))
}

/** Returns the groups without those members. */
function withoutMoved () {
  const groups = /** @type {Pick<typeof OPTIONS, 'keep' | 'slow' | 'spans' | 'buffer' | 'limits'>} */ ({})
  for (const [group, member] of Object.values(MOVED)) {
    const { [member]: _, ...members } = groups[group]?.members ?? OPTIONS[group].members
    groups[group] = { ...OPTIONS[group], members }
  }
  return groups
}

function resolveOptions (userOptions = EMPTY, environment = undefined) {
  const { env, fromFile } = environmentOf(environment)
  const given = checkOptions('', userOptions, (name, hint) => {
    if (!REGISTER_OPTIONS.includes(name)) env.warn('LT_WARN_OPTION_UNKNOWN', `unknown option '${printable(name, 64)}' ignored${hint === undefined ? '' : `: use ${hint}`}`)
  })
  for (const [name, [group, member]] of Object.entries(MOVED)) given[name] = given[group]?.[member] ?? given[name]
  const resource = resolveResource({ __proto__: null, ...fromFile.resource, ...given.resource }, given.serviceName, env, given.omitAttributes)
  const { enabled, ...settings } = settle(ROWS, given, { given, env, fromFile })
  const hasLogs = given.logs !== false && (typeof given.logs === 'object' || env.find(...logs.members.export.variables, 'OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN') !== undefined)
  const hasMetrics = given.metrics ?? env.find(...metrics.members.exporter.variables) !== undefined
  warnAboutUnread(given, settings, env)
  return Object.freeze({
    ...settings,
    disabled: !enabled,
    disabledBy: enabled ? '' : given.enabled === false ? 'enabled: false' : 'OTEL_SDK_DISABLED',
    serviceName: resource.attributes['service.name'],
    resource,
    exporter: resolveExporter(given, env, hasMetrics || hasLogs),
    namesOpen: env.text('LIGHT_TRACE_VIEWER') !== undefined, // under `npx light-trace`, spans that never end are sent when the application closes
    logIds: (given.logs?.ids ?? given.logs) !== false, // in the application's own log lines
    exportedLogs: hasLogs ? signals().resolveLogs(given, env, settings.limits) : null,
    metrics: hasMetrics ? signals().resolveMetrics(given, env) : null,
    platform: serverlessPlatform(env),
    // Last, because it copies the warnings of everything above.
    warnings: Object.freeze(env.warnAboutMisspelled().warnings.slice()),
    news: Object.freeze(env.news.slice())
  })
}

/** Warns about options that have no effect, or a different effect than expected. */
function warnAboutUnread (given, settings, env) {
  if (settings.recorder?.blockedLoop && settings.blockedLoop === null) env.warn('LT_WARN_RECORDER', 'keep.recorder.blockedLoop has no effect without slow.blockedLoop')
  if (settings.keep?.slow && settings.slow.afterMs === Infinity && settings.configFile === null) env.warn('LT_WARN_OPTION_MEANING', 'keep.slow keeps nothing but requests of routes with their own `slow`: the option `slow` is false')
  for (const pattern of given.ignore ?? []) if (isLikeExpression(pattern)) env.warn('LT_WARN_OPTION_MEANING', expressionWarning(pattern))
  if (given.buffer?.maxBytes === undefined && env.text('OTEL_BSP_MAX_QUEUE_SIZE') !== undefined) {
    env.inform('OTEL_BSP_MAX_QUEUE_SIZE is ignored: it counts spans, and the buffer of light-trace is limited in bytes, by buffer.maxBytes')
  }
  const node = env.find('NODE_OTEL', 'NODE_OTEL_ENDPOINT')
  if (node === undefined || (node.name === 'NODE_OTEL' && /^(?:0|false)$/i.test(node.value))) return
  env.warn('LT_WARN_NODE_OTEL', `${node.name} switches Node's own tracer on: each request gets a second SERVER span, and outgoing calls carry that tracer's traceparent. Unset it`)
}

function expressionWarning (pattern) {
  return `ignore: ${describeValue(pattern)} is read as a path, in which * alone stands for anything. Write a regular expression without the quotes: ignore: [/^\\/health\\/.*/]`
}

/** Returns the variables, or the values that replace them if OTEL_CONFIG_FILE is set. `fromFile` has the file's other settings. */
function environmentOf (variables) {
  const given = new Environment(variables)
  const file = given.text('OTEL_CONFIG_FILE', 'OTEL_EXPERIMENTAL_CONFIG_FILE')
  if (file === undefined) return { env: given, fromFile: EMPTY }
  const { values, fromFile, warnings } = features.environmentOf(file, given.values) ?? { values: given.values, fromFile: EMPTY, warnings: [] }
  const env = new Environment(values)
  for (const message of warnings) env.warn('LT_WARN_CONFIG_FILE', message)
  return { env, fromFile }
}

/** Resolves a route's `config.trace`. */
function resolveRouteOptions (value) {
  const given = value === undefined ? EMPTY : checkRoute('config.trace', value)
  return Object.freeze({ off: given.ignore === true, ...settle(ROUTE, given) })
}

/** Resolves the content of `configFile`. Absent members are undefined. Throws if it is invalid, except for levels: see AppLogs.checkLevels(). */
function resolveLive (value) {
  const { logs, ...given } = checkOf({ members: liveRows(OPTIONS) }, meant)('configFile', value)
  const live = { sampler: undefined, keep: undefined, slow: undefined, ignore: undefined, logs }
  const context = { env: new Environment() } // for members that the file omits but a variable sets
  for (const [name, member] of Object.entries(given)) live[name] = settled(ROWS[name], member, context)
  return live
}

// For metrics and exported log lines, loaded only if there are any.
function signals () { return require('./signals.js') }
