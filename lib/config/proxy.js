'use strict'

// The proxy between the exporter and the collector: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, by Node's own rules and only
// where Node itself is told to go by them. Loaded only if one of them is set.
// https://nodejs.org/api/http.html#built-in-proxy-support

const { inspect } = require('node:util')
const { isIPv4 } = require('node:net')
const { describeUrl, parseHttpUrl } = require('./endpoint')

const PORTS = { 'http:': 80, 'https:': 443 }
const FLAG = '--use-env-proxy'
const NO_FLAG = '--no-use-env-proxy'

// The password is private, for the reason that exporter.js gives.
class ExporterProxy {
  #authorization

  constructor ({ protocol, hostname, port }, authorization) {
    this.host = bare(hostname)
    this.port = port === '' ? PORTS[protocol] : Number(port)
    this.isSecure = protocol === 'https:'
    this.printableUrl = `${protocol}//${hostname}:${this.port}`
    this.#authorization = authorization
    Object.freeze(this)
  }

  // '' where its URL has no user.
  get authorization () { return this.#authorization }

  [inspect.custom] () {
    return { ...this }
  }
}

module.exports = { resolveProxy }

/**
 * @param {URL} url the exporter's
 * @param {{ name: string, value: string }} variable HTTP_PROXY or HTTPS_PROXY
 * @param {Environment} env
 * @returns {ExporterProxy | null}
 */
function resolveProxy (url, { name, value }, env) {
  if (isExcluded(url, env.text('no_proxy', 'NO_PROXY') ?? '')) return null
  if (!nodeUsesProxies(env)) {
    env.inform(`${name} is not used by the exporter: start node with NODE_USE_ENV_PROXY=1 if it should be`)
    return null
  }
  const proxy = parseHttpUrl(value)
  if (proxy === null) {
    env.warn('LT_WARN_ENV', `${name} is ignored by the exporter: it must be a URL such as 'http://proxy:3128', received ${describeUrl(value)}`)
    return null
  }
  return new ExporterProxy(proxy, authorizationOf(proxy, name, env))
}

// As Node does: the last flag counts, the command line before NODE_OPTIONS, and the variable where there is none.
function nodeUsesProxies (env) {
  const flags = [...(env.text('NODE_OPTIONS') ?? '').split(/\s+/), ...process.execArgv].filter((flag) => flag === FLAG || flag === NO_FLAG)
  return flags.length > 0 ? flags.at(-1) === FLAG : env.text('NODE_USE_ENV_PROXY') === '1'
}

function authorizationOf ({ username, password }, name, env) {
  if (username === '' && password === '') return ''
  try {
    return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`
  } catch {
    env.warn('LT_WARN_ENV', `user and password in ${name} are not percent-encoded and are not sent`)
    return ''
  }
}

// NO_PROXY: names, '.suffix', '*.suffix', '*', 'name:port' and ranges of IPv4 addresses, with commas between them.
function isExcluded ({ protocol, hostname, port }, list) {
  const host = bare(hostname).toLowerCase()
  const hostAndPort = `${host}:${port === '' ? PORTS[protocol] : port}`
  return list.split(',').some((item) => excludes(item.trim().toLowerCase(), host, hostAndPort))
}

function excludes (item, host, hostAndPort) {
  if (item === '') return false
  if (item === '*' || item === host || item === hostAndPort) return true
  if (item.startsWith('.')) return host === item.slice(1) || host.endsWith(item)
  if (item.startsWith('*.')) return host.endsWith(item.slice(1))
  return isIPv4(host) && isInRange(host, item.split('-'))
}

function isInRange (host, [first = '', last = '']) {
  const [from, to] = [first.trim(), last.trim()]
  return isIPv4(from) && isIPv4(to) && number(from) <= number(host) && number(host) <= number(to)
}

function number (address) {
  return address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
}

function bare (hostname) {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}
