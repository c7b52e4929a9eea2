'use strict'

// Settings for how spans and metrics leave the process: the exporter, and for OTLP the request.

const { printable } = require('../runtime/report.js')
const {
  CREDENTIAL, DURATION_MAX_MS, EMPTY, FIELD_VALUE, TOKEN, boolean, duration, literal, optionInvalid, readOwn, wrongValue
} = require('./checks.js')
const { VARIABLE_LENGTH_MAX, pairsIn } = require('./env.js')
const { checkOf, group, settled } = require('./rows.js')
const {
  EXPECTED_URL, basicAuthorization, endpointFromCode, endpointFromEnvironment, isLinkLocal, isLoopback, names, parseHttpUrl, withSecrets
} = require('./endpoint.js')

const EXPORTER_KINDS = ['otlp', 'otlp/stdout', 'console', 'none']
const EXPECTED_KIND = `'${EXPORTER_KINDS.join("', '")}' or an object with a url`
const PROTOCOLS = ['http/protobuf', 'http/json', 'grpc']

const AROUND_MS = 30_000 // default timeout of a metric reader and a log processor

const GRPC_PORT = '4317'

// The row of the table of options.
const EXPORTER = group({ check: checkExporter, default: 'otlp', variables: ['OTEL_TRACES_EXPORTER'] }, {
  url: { check: checkUrl, variables: names('ENDPOINT') },
  headers: { check: checkHeaders, variables: names('HEADERS') },
  compression: { check: literal('none', 'gzip', 'zstd'), default: 'none', variables: names('COMPRESSION') },
  timeoutMs: { check: duration, default: 10_000, variables: names('TIMEOUT') }, // specification, "OTLP Exporter": per batch
  ca: { check: checkPem, variables: names('CERTIFICATE') },
  cert: { check: checkPem, variables: names('CLIENT_CERTIFICATE') },
  key: { check: checkPem, variables: names('CLIENT_KEY') },
  insecureHeaders: { check: boolean, default: false, variables: names('INSECURE') }
})

module.exports = { EXPORTER, EXPORTER_KINDS, checkExporter, resolveExporter, exporterOfSignal }

const MEMBERS = EXPORTER.members
const checkMembers = checkOf({ members: MEMBERS })

function checkExporter (path, value) {
  if (EXPORTER_KINDS.includes(value)) return { __proto__: null, kind: value }
  if (typeof value?.export === 'function') { // an SDK exporter
    throw wrongValue(path, `${EXPECTED_KIND}; an SDK exporter goes into \`spanProcessors: [new BatchSpanProcessor(exporter)]\``, value)
  }
  if (typeof value !== 'object' || value === null) throw wrongValue(path, EXPECTED_KIND, value)
  return Object.assign(checkMembers(path, value), { kind: 'otlp' })
}

function checkUrl (path, value) {
  // A URL object does not tell whether its '/' was written.
  const isBare = value instanceof URL && value.pathname === '/' && value.href.endsWith('/')
  const text = value instanceof URL ? value.href.slice(0, isBare ? -1 : undefined) : value
  if (typeof text !== 'string' || parseHttpUrl(text) === undefined) throw wrongValue(path, EXPECTED_URL, text)
  return text
}

// `isShared`: metrics or logs use the exporter too. If something else takes the spans, warnings about the exporter's variables are noise.
function resolveExporter ({ exporter: given = EMPTY, spanProcessors, tracerProvider }, environment, isShared = false) {
  const kind = given.kind ?? kindFromEnvironment(environment)
  const isGiven = given.kind !== undefined && kind !== 'none'
  const idle = Boolean(tracerProvider) || (Boolean(spanProcessors) && !isGiven)
  if (idle && isGiven && !(isShared && kind === 'otlp')) {
    environment.warn('LT_WARN_EXPORTER', 'no spans go to `exporter`: `tracerProvider` makes and exports them')
  }
  const env = idle || kind !== 'otlp' ? environment.muted() : environment
  return otlpSettings(kind, given, endpointOfSignal('v1/traces', given, EMPTY, env), env, 'OTEL_BSP_EXPORT_TIMEOUT', 0, idle)
}

const TRACES_END = /\/v1\/traces$/

/**
 * Resolves the exporter of metrics or logs: its own, else the span exporter given in code, else the environment's.
 * @param {'METRICS' | 'LOGS'} signal
 */
function exporterOfSignal (signal, own = EMPTY, options, environment, timeoutVariable) {
  const env = environment.forSignal(signal)
  const path = `v1/${signal.toLowerCase()}`
  // A span exporter given in code serves this signal too, with its headers, unless this signal has its own URL.
  const isElsewhere = own.url !== undefined || env.text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') !== undefined
  const shared = !isElsewhere && options.exporter?.kind === 'otlp' ? options.exporter : EMPTY
  return otlpSettings('otlp', { ...shared, ...own, kind: 'otlp' }, endpointOfSignal(path, own, shared, env), env, timeoutVariable, AROUND_MS)
}

function endpointOfSignal (path, own, shared, env) {
  if (own.url !== undefined) return endpointFromCode(own.url, path)
  if (shared.url === undefined) return endpointFromEnvironment(env, path)
  const url = endpointFromCode(shared.url, path)
  // A custom path for spans says nothing about another signal's path. Only a path that ends in /v1/traces is converted.
  if (!url.pathname.endsWith(path)) url.pathname = TRACES_END.test(url.pathname) ? url.pathname.replace(TRACES_END, `/${path}`) : `/${path}`
  return url
}

// `timeoutVariable` and its default `aroundMs` belong to the processor or reader that surrounds the exporter. `idle`: the exporter gets
// no spans, because span processors or a tracer provider take them.
function otlpSettings (kind, given, url, env, timeoutVariable, aroundMs = 0, idle = false) {
  warnAboutEndpoint(url, given, env)
  const isSecure = url.protocol === 'https:'
  const variable = isSecure ? env.find('https_proxy', 'HTTPS_PROXY') : env.find('http_proxy', 'HTTP_PROXY')
  const proxy = variable === undefined ? null : require('./tls-and-proxy.js').proxyFor(url, variable, env)
  const headers = resolveHeaders(url, given, env, proxy !== null)
  const { ca, cert, key } = isSecure ? require('./tls-and-proxy.js').resolveTls(given, env) : EMPTY
  return withSecrets({
    kind,
    explicit: given.kind !== undefined,
    idle,
    compression: compressionHere(settled(MEMBERS.compression, given.compression, { env }), env),
    timeoutMs: given.timeoutMs === undefined ? timeoutFromEnvironment(env, timeoutVariable, aroundMs) : given.timeoutMs || DURATION_MAX_MS,
    proxy,
    printableUrl: `${url.origin}${url.pathname}` // without the query, where some vendors expect their API key
  }, { url: url.href, headers: Object.freeze(headers), ca, cert, key })
}

function checkPem (path, value) {
  return require('./tls-and-proxy.js').checkPem(path, value)
}

// The variable may name several exporters. We have one, so the first known name is used.
function kindFromEnvironment (env) {
  const [name] = EXPORTER.variables
  const [kind, ...others] = env.namesOf(name, EXPORTER_KINDS) ?? []
  if (others.length > 0) env.warn('LT_WARN_ENV', `${name} names several exporters: only ${kind} is used`)
  return kind ?? 'otlp'
}

/** Falls back to gzip if this Node has no zstd (before 22.15), because a fleet may run several versions. */
function compressionHere (compression, env) {
  if (compression !== 'zstd' || 'zstdCompress' in require('node:zlib')) return compression
  env.warn('LT_WARN_COMPRESSION', 'zstd needs Node 22.15 or later: gzip is used')
  return 'gzip'
}

// 0 means "no limit" in both. The shorter timeout applies, as with a batch processor around an exporter.
function timeoutFromEnvironment (env, timeoutVariable, aroundMs) {
  const request = settled(MEMBERS.timeoutMs, undefined, { env })
  const around = env.integer([timeoutVariable], { max: DURATION_MAX_MS }) ?? aroundMs
  return Math.min(request || DURATION_MAX_MS, around || DURATION_MAX_MS)
}

function warnAboutEndpoint (url, given, env) {
  warnAboutProtocol(url, given, env)
  if (isLinkLocal(url)) {
    env.warn('LT_WARN_ENDPOINT', `the exporter's URL is a link-local address, ${url.hostname}, where cloud providers serve instance credentials: is it a collector?`)
  }
  if (url.protocol === 'https:' && env.text('NODE_TLS_REJECT_UNAUTHORIZED') === '0') {
    env.warn('LT_WARN_TLS_UNVERIFIED', 'NODE_TLS_REJECT_UNAUTHORIZED=0: the collector\'s certificate is not verified; use exporter.ca instead')
  }
}

// Only http/protobuf is supported. A URL given in code is meant for us, so the protocol variables do not apply to it.
function warnAboutProtocol (url, given, env) {
  const protocol = given.url === undefined ? env.oneOf(names('PROTOCOL'), PROTOCOLS) : undefined
  const unsupported = protocol !== undefined && protocol !== 'http/protobuf'
  if (!unsupported && url.port !== GRPC_PORT) return
  const what = unsupported ? `OTLP over ${protocol} is not supported: http/protobuf is used` : 'http/protobuf is used'
  const where = url.port === GRPC_PORT ? '; port 4317 usually speaks gRPC: use port 4318' : ''
  env.warn('LT_WARN_PROTOCOL', what + where)
}

// The headers that are sent to the collector. They may hold an API key, so they are never in a message, and never leave this machine in
// clear text unless the user asks for it. This check is final: the exporter writes them unchanged.

const HEADERS_MAX = 64
const VALUE_LENGTH_MAX = 8192

// Set by the request itself. Another value would break it.
const RESERVED = new Set([
  'connection', 'content-encoding', 'content-length', 'content-type', 'expect', 'host', 'keep-alive',
  'te', 'trailer', 'transfer-encoding', 'upgrade'
])

// Errors name only types, because the value may be the API key itself.
function checkHeaders (path, value) {
  if (typeof value !== 'object') throw optionInvalid(path, 'an object', `a value of type ${typeof value}`)
  const headers = Object.create(null)
  for (const [name, text] of readOwn(path, value)) {
    if (text === undefined) continue
    const reason = refused(name, text)
    if (reason !== null) throw optionInvalid(path, 'headers that can be sent', `${nameOf(name)} that cannot: ${reason}`)
    headers[name.toLowerCase()] = text
  }
  return headers
}

// User and password of the URL become a header, so that the URL can be shown. A given header takes precedence.
function resolveHeaders (url, given, env, isProxied) {
  const [own, general] = MEMBERS.headers.variables
  const headers = Object.assign(Object.create(null), parseHeaders(env, general), parseHeaders(env, own), given.headers)
  const authorization = basicAuthorization(url)
  if (authorization === null) env.warn('LT_WARN_ENDPOINT', 'user and password in the exporter\'s URL are not percent-encoded, so they are not sent')
  else if (authorization !== '') headers.authorization ??= authorization
  url.username = ''
  url.password = ''
  // A proxy can read clear text, even if the collector seems to be on this machine.
  if (url.protocol !== 'https:' && (isProxied || !isLoopback(url))) guardCredentials(headers, given, env)
  return headers
}

function guardCredentials (headers, given, env) {
  const credentials = Object.keys(headers).filter((name) => CREDENTIAL.test(name))
  // OpenTelemetry defines INSECURE for gRPC. Setting it means that clear text is acceptable.
  const isAllowed = settled(MEMBERS.insecureHeaders, given.insecureHeaders, { env })
  if (credentials.length === 0) return
  if (!isAllowed) for (const name of credentials) delete headers[name]
  const what = isAllowed ? 'sends' : 'does not send'
  const why = isAllowed ? ', because insecureHeaders is set' : ': use https:, or set exporter.insecureHeaders: true'
  env.warn('LT_WARN_INSECURE_HEADERS', `the exporter ${what} ${printable(credentials.join(', '), 100)} over plain HTTP${why}`)
}

function parseHeaders (env, name) {
  const headers = Object.create(null)
  const text = env.text(name) ?? ''
  if (text.length > VARIABLE_LENGTH_MAX) {
    env.warn('LT_WARN_ENV', `${name} is ignored: it is longer than ${VARIABLE_LENGTH_MAX} characters`)
    return headers
  }
  pairsIn(text).forEach(([key, value], index) => {
    const isPair = value !== undefined || key !== ''
    const reason = !isPair || /[:\s]/.test(key)
      ? 'write headers as name=value, separated by commas, without colons'
      : index < HEADERS_MAX ? refused(key, value) : `there are more than ${HEADERS_MAX}`
    if (reason === null) headers[key.toLowerCase()] = value
    else env.warn('LT_WARN_ENV', `${name}: ${nameOf(key)} is ignored: ${reason}`)
  })
  return headers
}

// 'Authorization: Bearer ...' in a variable puts the secret into the part that we parse as the name.
function nameOf (name) {
  return TOKEN.test(name) ? `the header '${printable(name, 64)}'` : 'a header'
}

function refused (name, value) {
  if (!TOKEN.test(name)) return 'its name is empty or has characters that a header must not have'
  if (RESERVED.has(name.toLowerCase())) return 'the exporter sets it itself'
  if (typeof value !== 'string') return 'its value is not a string or cannot be decoded'
  if (value.length > VALUE_LENGTH_MAX) return `its value is longer than ${VALUE_LENGTH_MAX} characters`
  return FIELD_VALUE.test(value) ? null : 'its value holds control characters'
}
