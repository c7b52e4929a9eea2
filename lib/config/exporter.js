'use strict'

// How spans leave the process: to which exporter, and for OTLP by which request.

const { inspect } = require('node:util')
const { DURATION_MAX_MS, EMPTY, boolean, duration, literal, object, wrong, wrongValue } = require('./checks')
const { EXPECTED_URL, describeUrl, endpointFromCode, endpointFromEnvironment, isLinkLocal, parseHttpUrl } = require('./endpoint')

// Headers and certificates have files of their own, which are required where there are any.

const KINDS = ['otlp', 'otlp/stdout', 'console', 'none']
const COMPRESSIONS = ['none', 'gzip']
const PROTOCOLS = ['http/protobuf', 'http/json', 'grpc']

// "OTLP Exporter": 10 s for each batch.
const DEFAULT_TIMEOUT_MS = 10000

const NO_TLS = Object.freeze({ ca: undefined, cert: undefined, key: undefined })

const GRPC_PORT = '4317'

const checkMembers = object({
  url: checkUrl,
  headers: (...args) => require('./exporter-headers').checkExporterHeaders(...args),
  compression: literal(...COMPRESSIONS),
  timeoutMs: duration,
  ca: checkPem,
  cert: checkPem,
  key: checkPem,
  insecureHeaders: boolean
})

// What may hold a secret is private with a getter on the prototype: util.inspect, JSON.stringify, a spread
// and a logger see the own fields only.
class ExporterSettings {
  #url
  #headers
  #tls

  constructor (kind, explicit, { url, headers, compression, timeoutMs, tls, proxy }) {
    this.kind = kind
    this.explicit = explicit
    this.compression = compression
    this.timeoutMs = timeoutMs
    this.proxy = proxy // ExporterProxy or null
    this.#url = url.href
    this.#headers = Object.freeze(headers)
    this.#tls = tls
    // For people: without the query, in which some vendors take their key.
    this.printableUrl = `${url.origin}${url.pathname}`
    Object.freeze(this)
  }

  get url () { return this.#url }
  get headers () { return this.#headers }
  get ca () { return this.#tls.ca }
  get cert () { return this.#tls.cert }
  get key () { return this.#tls.key }

  // With `showHidden` inspect would run the getters.
  [inspect.custom] () {
    return { ...this }
  }
}

function checkPem (...args) {
  return require('./tls-files').checkPem(...args)
}

module.exports = { checkExporter, resolveExporter, otlpSettings }

// From code: 'otlp' | 'otlp/stdout' | 'console' | 'none', or an object that describes an OTLP exporter.
function checkExporter (path, value) {
  if (KINDS.includes(value)) return Object.assign(Object.create(null), { kind: value })
  // An exporter of the SDK's, by its shape.
  if (typeof value?.export === 'function') {
    throw wrongValue(path, `'${KINDS.join("', '")}' or an object with a url; an SDK exporter goes into \`spanProcessors: [new BatchSpanProcessor(exporter)]\``, value)
  }
  if (typeof value === 'object' && value !== null) return Object.assign(checkMembers(path, value), { kind: 'otlp' })
  throw wrongValue(path, `'${KINDS.join("', '")}' or an object with a url`, value)
}

function checkUrl (path, value) {
  const text = value instanceof URL ? withoutEmptyPath(value) : value
  if (typeof text !== 'string' || parseHttpUrl(text) === null) throw wrong(path, EXPECTED_URL, describeUrl(text))
  return text
}

// A URL object cannot say whether its '/' was written.
function withoutEmptyPath (url) {
  return url.href.endsWith('/') && url.pathname === '/' ? url.href.slice(0, -1) : url.href
}

// `idle`: something else than an exporter takes the spans, so nobody wants to hear about its variables.
function resolveExporter (given = EMPTY, idle, environment) {
  const kind = given.kind ?? kindFromEnvironment(environment)
  const env = idle || kind !== 'otlp' ? environment.muted() : environment
  const url = given.url === undefined ? endpointFromEnvironment(env) : endpointFromCode(given.url)
  return otlpSettings(kind, given, url, env, 'OTEL_BSP_EXPORT_TIMEOUT')
}

// `timeoutVariable`: of what stands around the exporter, a processor or a reader.
function otlpSettings (kind, given, url, env, timeoutVariable, aroundMs = 0) {
  tellAboutEndpoint(url, given, env)
  const proxy = proxyFor(url, env)
  return new ExporterSettings(kind, given.kind !== undefined, {
    url,
    proxy,
    headers: headersFor(url, given, env, proxy !== null),
    compression: given.compression ?? env.oneOf(names('COMPRESSION'), COMPRESSIONS) ?? 'none',
    timeoutMs: given.timeoutMs === undefined ? timeoutFromEnvironment(env, timeoutVariable, aroundMs) : given.timeoutMs || DURATION_MAX_MS,
    tls: url.protocol === 'https:' ? require('./tls-files').resolveTls(given, env) : NO_TLS
  })
}

function proxyFor (url, env) {
  const variable = url.protocol === 'https:' ? env.find('https_proxy', 'HTTPS_PROXY') : env.find('http_proxy', 'HTTP_PROXY')
  return variable === undefined ? null : require('./proxy').resolveProxy(url, variable, env)
}

function headersFor (url, given, env, isProxied) {
  // OpenTelemetry defines INSECURE for gRPC; who sets it has been asked whether clear text will do.
  const clearText = given.insecureHeaders ?? env.boolean(...names('INSECURE')) ?? false
  const areGiven = given.headers !== undefined || env.find(...names('HEADERS')) !== undefined || url.username !== '' || url.password !== ''
  return areGiven ? require('./exporter-headers').resolveHeaders(given.headers, url, clearText, env, isProxied) : Object.create(null)
}

function names (suffix) {
  return [`OTEL_EXPORTER_OTLP_TRACES_${suffix}`, `OTEL_EXPORTER_OTLP_${suffix}`]
}

// The variable may name several. We have one exporter; the first that is known is taken.
function kindFromEnvironment (env) {
  const name = 'OTEL_TRACES_EXPORTER'
  const [kind, ...others] = (env.list(name) ?? []).map((item) => item.toLowerCase())
    .filter((item) => KINDS.includes(item) || env.ignored(name, item, KINDS.join(', ')))
  if (others.length > 0) env.warn('LT_WARN_ENV', `${name} names several exporters: ${kind} is used`)
  return kind ?? 'otlp'
}

// 0 is "no limit" in both. The shorter one holds, as it would with a batch processor around an exporter.
function timeoutFromEnvironment (env, timeoutVariable, aroundMs) {
  const request = env.integer(names('TIMEOUT'), { max: DURATION_MAX_MS }) ?? DEFAULT_TIMEOUT_MS
  const around = env.integer([timeoutVariable], { max: DURATION_MAX_MS }) ?? aroundMs
  return Math.min(request || DURATION_MAX_MS, around || DURATION_MAX_MS)
}

function tellAboutEndpoint (url, given, env) {
  tellAboutProtocol(url, given, env)
  if (isLinkLocal(url)) {
    env.warn('LT_WARN_ENDPOINT', `the exporter's URL points to a link-local address, ${url.hostname}, where machines keep their credentials`)
  }
  if (url.protocol === 'https:' && env.text('NODE_TLS_REJECT_UNAUTHORIZED') === '0') {
    env.warn('LT_WARN_TLS_UNVERIFIED', 'NODE_TLS_REJECT_UNAUTHORIZED=0: the collector\'s certificate is not verified')
  }
}

// We speak http/protobuf only. A URL from code says that it is meant for us.
function tellAboutProtocol (url, given, env) {
  const protocol = given.url === undefined ? env.oneOf(names('PROTOCOL'), PROTOCOLS) : undefined
  const unsupported = protocol !== undefined && protocol !== 'http/protobuf'
  if (!unsupported && url.port !== GRPC_PORT) return
  const what = unsupported ? `OTLP over ${protocol} is not supported, http/protobuf is used` : 'http/protobuf is used'
  const where = url.port === GRPC_PORT ? '; port 4317 usually speaks gRPC, the port for HTTP is 4318' : ''
  env.warn('LT_WARN_PROTOCOL', what + where)
}
