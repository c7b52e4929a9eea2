'use strict'

// Where the spans go: one URL, settled at boot, never from a request.

const DEFAULT_ENDPOINT = 'http://localhost:4318'
const TRACES_PATH = 'v1/traces'
const URL_LENGTH_MAX = 8192

const EXPECTED_URL = "a URL such as 'http://localhost:4318', with http: or https:"

module.exports = { EXPECTED_URL, describeUrl, endpointFromCode, endpointFromEnvironment, isLoopback, isLinkLocal, parseHttpUrl }

// A URL with a path is used as it is. One without any would post to '/', where no collector listens.
function endpointFromCode (url, path = TRACES_PATH) {
  return hasNoPath(url) ? withPath(new URL(url), path) : new URL(url)
}

// "OTLP Exporter": the signal's own variable is used as it is, the general one gets v1/traces appended.
function endpointFromEnvironment (env, path = TRACES_PATH) {
  const own = usable(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  if (own !== undefined) return own
  return withPath(usable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT') ?? new URL(DEFAULT_ENDPOINT), path)
}

function usable (env, name) {
  const value = env.text(name)
  if (value === undefined) return undefined
  const url = parseHttpUrl(value)
  if (url === null) env.warn('LT_WARN_ENV', `${name} is ignored: it must be ${EXPECTED_URL}, received ${describeUrl(value)}`)
  return url ?? undefined
}

// A URL, or null: URL.canParse and a scheme that we can speak. 'localhost:4318' parses, with the scheme 'localhost:'.
function parseHttpUrl (value) {
  if (value.length > URL_LENGTH_MAX || !URL.canParse(value)) return null
  const url = new URL(value)
  return url.protocol === 'http:' || url.protocol === 'https:' ? url : null
}

function withPath (url, path) {
  url.pathname += url.pathname.endsWith('/') ? path : `/${path}`
  return url
}

function hasNoPath (url) {
  const start = url.indexOf('://')
  return start !== -1 && !/[/?#]/.test(url.slice(start + 3))
}

// WHATWG's parser has written IPv4 in its one dotted form and IPv6 in brackets by now.
function isLoopback (url) {
  const { hostname } = url
  return hostname === 'localhost' || hostname.endsWith('.localhost') || isIPv4(hostname, '127.') ||
    hostname === '[::1]' || /^\[::ffff:7f[0-9a-f]{2}:/.test(hostname)
}

// Where clouds keep the machine's own credentials; a POST there is never what somebody wanted.
function isLinkLocal (url) {
  const { hostname } = url
  return isIPv4(hostname, '169.254.') || /^\[(?:fe[89ab][0-9a-f]|::ffff:a9fe):/.test(hostname) ||
    hostname === '[fd00:ec2::254]' || hostname === 'metadata.google.internal'
}

// Not '127.0.0.1.example.com'.
function isIPv4 (hostname, prefix) {
  return hostname.startsWith(prefix) && /^[0-9.]+$/.test(hostname)
}

// A query or what stands before an '@' may be a secret, also in what is no URL.
function describeUrl (value) {
  const { describeValue } = require('./errors') // only a wrong one is described
  if (typeof value !== 'string') return describeValue(value)
  return value.includes('@') ? "a string with an '@'" : describeValue(value.split('?')[0])
}
