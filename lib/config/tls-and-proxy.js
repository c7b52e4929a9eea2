'use strict'

// Settings for an exporter that uses https: or a proxy. Most collectors are local, so this file is loaded only if needed.

const { isIPv4 } = require('node:net')
const tls = require('node:tls')
const { X509Certificate } = require('node:crypto')
const { attempt } = require('../runtime/report.js')
const { FILE_BYTES_MAX, describeValue, optionInvalid, readFile } = require('./checks.js')
const { basicAuthorization, hostAndPort, names, parseHttpUrl, withSecrets } = require('./endpoint.js')

module.exports = { checkPem, resolveTls, proxyFor }

// Accepts PEM as text or bytes, or the path of a PEM file. Errors never show the value, because it may be the key.
function checkPem (path, value) {
  const kind = Buffer.isBuffer(value) ? 'a Buffer' : `a value of type ${typeof value}`
  const isText = typeof value === 'string' && value.includes('-----BEGIN')
  const pem = isText ? Buffer.from(value) : Buffer.isBuffer(value) ? value : readBounded(value)
  if (pem === null) throw optionInvalid(path, `PEM, or the path of a readable PEM file of at most ${FILE_BYTES_MAX} bytes`, kind)
  const reason = unusable({ [path.slice(path.lastIndexOf('.') + 1)]: pem })
  if (reason !== null) throw optionInvalid(path, 'PEM that Node can read', `${kind} (${reason})`)
  return pem
}

function resolveTls (given, env) {
  const ca = given.ca ?? pemFromEnvironment('ca', 'CERTIFICATE', env)
  const cert = given.cert ?? pemFromEnvironment('cert', 'CLIENT_CERTIFICATE', env)
  const key = given.key ?? pemFromEnvironment('key', 'CLIENT_KEY', env)
  const reason = unusable({ ca, cert, key })
  if (reason === null) return { ca, cert, key }
  // Certificate and key do not match. The CA alone still protects what is sent.
  env.warn('LT_WARN_TLS', `the client's certificate and key are not used: ${reason}`)
  return { ca, cert: undefined, key: undefined }
}

function pemFromEnvironment (member, suffix, env) {
  const variable = env.find(...names(suffix))
  if (variable === undefined) return undefined
  const pem = readBounded(variable.value)
  const reason = pem === null ? 'it must be the path of a readable file' : unusable({ [member]: pem })
  if (reason === null) return pem
  env.warn('LT_WARN_TLS', `${variable.name} is ignored: ${reason}`)
}

function readBounded (path) {
  const bytes = typeof path === 'string' ? attempt(() => readFile(path)) : undefined
  return bytes === undefined || bytes.length === 0 ? null : bytes
}

/**
 * Returns why Node cannot use these, or null. The reason is OpenSSL's code, which reveals nothing of the content.
 * @param {{ [member: string]: Buffer | undefined }} pems ca, cert and key
 */
function unusable ({ ca, cert, key }) {
  try {
    tls.createSecureContext({ ca, cert, key })
    if (ca !== undefined) parseAuthority(ca)
    return null
  } catch (error) {
    return typeof error.code === 'string' ? error.code : 'it cannot be read'
  }
}

// createSecureContext silently ignores an invalid CA, so it is parsed here.
function parseAuthority (ca) {
  return new X509Certificate(ca)
}

// The proxy between the exporter and the collector. It follows Node's rules, and is used only if Node itself uses proxies.
// https://nodejs.org/api/http.html#built-in-proxy-support

const FLAG = '--use-env-proxy'
const NO_FLAG = '--no-use-env-proxy'

/** @returns the proxy that the variable names for the collector at this URL, or null. `authorization` is '' for a proxy without a user. */
function proxyFor (url, { name, value }, env) {
  if (isExcluded(url, env.text('no_proxy', 'NO_PROXY') ?? '')) return null
  if (!nodeUsesProxies(env)) {
    env.inform(`${name} is not used by the exporter: start node with NODE_USE_ENV_PROXY=1 to use it`)
    return null
  }
  const proxy = parseHttpUrl(value)
  if (proxy === undefined) {
    env.warn('LT_WARN_ENV', `${name} is ignored by the exporter: it must be a URL such as 'http://proxy:3128', received ${describeValue(value)}`)
    return null
  }
  const authorization = basicAuthorization(proxy)
  if (authorization === null) env.warn('LT_WARN_ENV', `user and password in ${name} are not percent-encoded, so they are not sent`)
  const { host, port } = hostAndPort(proxy)
  const shown = { host, port, isSecure: proxy.protocol === 'https:', printableUrl: `${proxy.protocol}//${proxy.hostname}:${port}` }
  return withSecrets(shown, { authorization: authorization ?? '' })
}

// As in Node, the last flag counts, the command line overrides NODE_OPTIONS, and the variable counts if there is no flag.
function nodeUsesProxies (env) {
  const flags = [...(env.text('NODE_OPTIONS') ?? '').split(/\s+/), ...process.execArgv].filter((flag) => flag === FLAG || flag === NO_FLAG)
  return flags.length > 0 ? flags.at(-1) === FLAG : env.text('NODE_USE_ENV_PROXY') === '1'
}

// NO_PROXY is a comma-separated list of names, '.suffix', '*.suffix', '*', 'name:port' and ranges of IPv4 addresses.
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
