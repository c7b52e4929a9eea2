'use strict'

// Where spans and metrics go: the collector's URL and the proxy before it, settled at boot, never by a request.

const { inspect } = require('node:util')
const { isIPv4 } = require('node:net')
const { describeValue } = require('./checks')

const DEFAULT_ENDPOINT = 'http://localhost:4318'
const TRACES_PATH = 'v1/traces'
const URL_LENGTH_MAX = 8192

const EXPECTED_URL = "a URL such as 'http://localhost:4318', with http: or https:"

// A URL with a path is used as it is. One without any would post to '/', where no collector listens.
function endpointFromCode (url, path = TRACES_PATH) {
  const start = url.indexOf('://')
  const hasNoPath = start !== -1 && !/[/?#]/.test(url.slice(start + 3))
  return hasNoPath ? withPath(new URL(url), path) : new URL(url)
}

// "OTLP Exporter": the signal's own variable is used as it is, the general one gets v1/traces appended.
function endpointFromEnvironment (env, path = TRACES_PATH) {
  const own = usable(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  if (own !== undefined) return own
  const general = usable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT') ?? new URL(DEFAULT_ENDPOINT)
  if (/\/v1\/(?:traces|metrics|logs)\/?$/.test(general.pathname)) {
    env.warn('LT_WARN_ENDPOINT', `OTEL_EXPORTER_OTLP_ENDPOINT ends in a signal's path, and ${path} is added to it: leave that path out, or set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`)
  }
  return withPath(general, path)
}

function usable (env, name) {
  const value = env.text(name)
  if (value === undefined) return undefined
  const url = parseHttpUrl(value)
  if (url !== null) return url
  env.warn('LT_WARN_ENV', `${name} is ignored: it must be ${EXPECTED_URL}, received ${describeValue(value)}`)
}

function withPath (url, path) {
  url.pathname += url.pathname.endsWith('/') ? path : `/${path}`
  return url
}

/** @returns {URL | null} null for another scheme too: 'localhost:4318' parses, with the scheme 'localhost:' */
function parseHttpUrl (value) {
  if (value.length > URL_LENGTH_MAX || !URL.canParse(value)) return null
  const url = new URL(value)
  return url.protocol === 'http:' || url.protocol === 'https:' ? url : null
}

// Whether the URL is this machine's. WHATWG's parser has written IPv4 in its one dotted form and IPv6 in brackets by now.
function isLoopback ({ hostname }) {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || isIPv4In(hostname, '127.') ||
    hostname === '[::1]' || /^\[::ffff:7f[0-9a-f]{2}:/.test(hostname)
}

/** Whether the URL is where clouds keep the machine's own credentials; a POST there is always a mistake. */
function isLinkLocal ({ hostname }) {
  return isIPv4In(hostname, '169.254.') || /^\[(?:fe[89ab][0-9a-f]|::ffff:a9fe):/.test(hostname) ||
    hostname === '[fd00:ec2::254]' || hostname === 'metadata.google.internal'
}

// Not '127.0.0.1.example.com'.
function isIPv4In (hostname, prefix) {
  return hostname.startsWith(prefix) && isIPv4(hostname)
}

/** @returns {string | null} an Authorization header; '' for a URL without a user, null if it is not percent-encoded */
function basicAuthorization ({ username, password }) {
  if (username === '' && password === '') return ''
  try {
    return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`
  } catch {
    return null
  }
}

/**
 * Adds what may hold a secret: util.inspect, JSON.stringify, a spread and a logger see `shown` only.
 * @template Shown, Secrets
 * @param {Shown} shown
 * @param {Secrets} secrets
 * @returns {Readonly<Shown & Secrets>}
 */
function withSecrets (shown, secrets) {
  for (const [name, value] of Object.entries(secrets)) Object.defineProperty(shown, name, { get: () => value })
  Object.defineProperty(shown, inspect.custom, { value: () => Object.assign({}, shown) }) // with `showHidden` inspect would run the getters
  return /** @type {Shown & Secrets} */ (Object.freeze(shown))
}

// The proxy between the exporter and the collector, by Node's own rules, and only if Node itself uses proxies.
// https://nodejs.org/api/http.html#built-in-proxy-support

const PORTS = { 'http:': 80, 'https:': 443 }
const FLAG = '--use-env-proxy'
const NO_FLAG = '--no-use-env-proxy'

/** @returns the proxy for the collector at this URL, or null. `authorization` is '' for one without a user. */
function resolveProxy (url, env) {
  const variable = url.protocol === 'https:' ? env.find('https_proxy', 'HTTPS_PROXY') : env.find('http_proxy', 'HTTP_PROXY')
  if (variable === undefined || isExcluded(url, env.text('no_proxy', 'NO_PROXY') ?? '')) return null
  const { name, value } = variable
  if (!nodeUsesProxies(env)) {
    env.inform(`${name} is not used by the exporter: to use it, start node with NODE_USE_ENV_PROXY=1`)
    return null
  }
  const proxy = parseHttpUrl(value)
  if (proxy === null) {
    env.warn('LT_WARN_ENV', `${name} is ignored by the exporter: it must be a URL such as 'http://proxy:3128', received ${describeValue(value)}`)
    return null
  }
  const authorization = basicAuthorization(proxy)
  if (authorization === null) env.warn('LT_WARN_ENV', `user and password in ${name} are not percent-encoded, so they are not sent`)
  const { host, port } = hostAndPort(proxy)
  const shown = { host, port, isSecure: proxy.protocol === 'https:', printableUrl: `${proxy.protocol}//${proxy.hostname}:${port}` }
  return withSecrets(shown, { authorization: authorization ?? '' })
}

// As Node does: the last flag counts, the command line before NODE_OPTIONS, and the variable where there is no flag.
function nodeUsesProxies (env) {
  const flags = [...(env.text('NODE_OPTIONS') ?? '').split(/\s+/), ...process.execArgv].filter((flag) => flag === FLAG || flag === NO_FLAG)
  return flags.length > 0 ? flags.at(-1) === FLAG : env.text('NODE_USE_ENV_PROXY') === '1'
}

// NO_PROXY: names, '.suffix', '*.suffix', '*', 'name:port' and ranges of IPv4 addresses, with commas between them.
function isExcluded (url, list) {
  const { host, port } = hostAndPort(url)
  return list.split(',').some((item) => excludes(item.trim().toLowerCase(), host.toLowerCase(), port))
}

function excludes (item, host, port) {
  if (item === '') return false
  if (item === '*' || item === host || item === `${host}:${port}`) return true
  if (item.startsWith('.')) return host === item.slice(1) || host.endsWith(item)
  if (item.startsWith('*.')) return host.endsWith(item.slice(1))
  const [from, to = ''] = item.split('-').map((address) => address.trim())
  return isIPv4(host) && isIPv4(from) && isIPv4(to) && number(from) <= number(host) && number(host) <= number(to)
}

function number (address) {
  return address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
}

/** What a socket connects to: an IPv6 address without its brackets, and the scheme's own port where none is named. */
function hostAndPort ({ protocol, hostname, port }) {
  return { host: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname, port: port === '' ? PORTS[protocol] : Number(port) }
}

module.exports = {
  EXPECTED_URL, basicAuthorization, endpointFromCode, endpointFromEnvironment, hostAndPort, isLinkLocal, isLoopback, parseHttpUrl, resolveProxy, withSecrets
}
