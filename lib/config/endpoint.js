'use strict'

// The collector's URL for spans and metrics. It is fixed at startup and never depends on a request.

const { inspect } = require('node:util')
const { isIPv4 } = require('node:net')
const { attempt } = require('../runtime/report.js')

const DEFAULT_ENDPOINT = 'http://localhost:4318'
const URL_LENGTH_MAX = 8192

const EXPECTED_URL = "a URL such as 'http://localhost:4318', with http: or https:"

// A URL with a path is used unchanged. A URL without a path gets one, because no collector listens on '/'.
function endpointFromCode (url, path) {
  const hasNoPath = /^[^/]*:\/\/[^/?#]*$/.test(url)
  return hasNoPath ? withPath(new URL(url), path) : new URL(url)
}

// Specification, "OTLP Exporter": the signal's own variable is used unchanged, and v1/traces is appended to the general one.
function endpointFromEnvironment (env, path) {
  const read = (name) => env.firstValid([name], `${EXPECTED_URL} and no comma`, (text) => text.includes(',') ? undefined : parseHttpUrl(text))
  const own = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  if (own !== undefined) return own
  const general = read('OTEL_EXPORTER_OTLP_ENDPOINT') ?? new URL(DEFAULT_ENDPOINT)
  if (/\/v1\/(?:traces|metrics|logs)\/?$/.test(general.pathname)) {
    env.warn('LT_WARN_ENDPOINT', `OTEL_EXPORTER_OTLP_ENDPOINT ends in a signal's path, and ${path} is appended to it: leave the path out, or set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`)
  }
  return withPath(general, path)
}

function withPath (url, path) {
  url.pathname += url.pathname.endsWith('/') ? path : `/${path}`
  return url
}

/** @returns {URL | undefined} also undefined for another scheme: 'localhost:4318' parses, with the scheme 'localhost:' */
function parseHttpUrl (value) {
  if (value.length > URL_LENGTH_MAX || !URL.canParse(value)) return undefined
  const url = new URL(value)
  return url.protocol === 'http:' || url.protocol === 'https:' ? url : undefined
}

// Whether the URL points to this machine. The WHATWG parser has already normalized IPv4 to dotted form and put IPv6 in brackets.
function isLoopback ({ hostname }) {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || isIPv4In(hostname, '127.') ||
    hostname === '[::1]' || /^\[::ffff:7f[0-9a-f]{2}:/.test(hostname)
}

/** Whether the URL is an address at which clouds serve the machine's own credentials. A POST there is always a mistake. */
function isLinkLocal ({ hostname }) {
  return isIPv4In(hostname, '169.254.') || /^\[(?:fe[89ab][0-9a-f]|::ffff:a9fe):/.test(hostname) ||
    hostname === '[fd00:ec2::254]' || hostname === 'metadata.google.internal'
}

// Excludes names like '127.0.0.1.example.com'.
function isIPv4In (hostname, prefix) {
  return hostname.startsWith(prefix) && isIPv4(hostname)
}

/** @returns {string | null} an Authorization header; '' for a URL without a user, null if it is not percent-encoded */
function basicAuthorization ({ username, password }) {
  if (username === '' && password === '') return ''
  const pair = attempt(() => `${decodeURIComponent(username)}:${decodeURIComponent(password)}`)
  return pair === undefined ? null : `Basic ${Buffer.from(pair).toString('base64')}`
}

/**
 * Adds members that may hold secrets. util.inspect, JSON.stringify, spread and loggers only see `shown`.
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

const PORTS = { 'http:': 80, 'https:': 443 }

/** Returns what a socket connects to: an IPv6 address without brackets, and the scheme's default port if the URL names none. */
function hostAndPort ({ protocol, hostname, port }) {
  return { host: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname, port: port === '' ? PORTS[protocol] : Number(port) }
}

/** Returns the names of a variable, the signal's own first. Environment replaces TRACES for other signals. */
function names (suffix) {
  return [`OTEL_EXPORTER_OTLP_TRACES_${suffix}`, `OTEL_EXPORTER_OTLP_${suffix}`]
}

module.exports = {
  EXPECTED_URL, basicAuthorization, endpointFromCode, endpointFromEnvironment, hostAndPort, isLinkLocal, isLoopback, names, parseHttpUrl, withSecrets
}
