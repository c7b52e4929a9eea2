'use strict'

// The headers that go to the collector. They may hold an API key, so: never in a message, never over clear
// text beyond this machine unless asked for, and checked here for good: the exporter writes them as they are.

const { CREDENTIAL, TOKEN, FIELD_VALUE } = require('./captured-headers')
const { readOwn } = require('./checks')
const { isLoopback } = require('./endpoint')
const { optionInvalid } = require('./errors')
const { printable } = require('../runtime/printable')

const HEADERS_MAX = 64
const VALUE_LENGTH_MAX = 8192
const ENVIRONMENT_LENGTH_MAX = 65536

// The request's own; somebody else's value would break it.
const RESERVED = new Set([
  'connection', 'content-encoding', 'content-length', 'content-type', 'expect', 'host', 'keep-alive',
  'te', 'trailer', 'transfer-encoding', 'upgrade'
])

module.exports = { checkExporterHeaders, resolveHeaders }

// Only types are named in the errors: the value may be the key itself.
function checkExporterHeaders (path, value) {
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

// What is sent to `url`; user and password are taken out of it.
function resolveHeaders (given, url, clearText, env, isProxied = false) {
  const headers = Object.assign(headersFromEnvironment(env), given)
  takeCredentials(url, headers, env)
  return withoutCredentials(headers, url, clearText, env, isProxied)
}

// 'k=v,k2=v2', percent-encoded, as W3C baggage without properties. The signal's own variable wins by name.
function headersFromEnvironment (env) {
  return Object.assign(Object.create(null),
    parseHeaders(env, 'OTEL_EXPORTER_OTLP_HEADERS'), parseHeaders(env, 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'))
}

function parseHeaders (env, name) {
  const headers = Object.create(null)
  const text = env.text(name) ?? ''
  if (text.length > ENVIRONMENT_LENGTH_MAX) {
    env.warn('LT_WARN_ENV', `${name} is ignored: it is longer than ${ENVIRONMENT_LENGTH_MAX} characters`)
    return headers
  }
  let left = HEADERS_MAX
  for (const pair of text.split(',')) {
    if (pair.trim() === '') continue
    const [key, value] = decodePair(pair)
    const reason = left-- > 0 ? refused(key, value) : `there are more than ${HEADERS_MAX}`
    if (reason === null) headers[key.toLowerCase()] = value
    else env.warn('LT_WARN_ENV', `${name}: ${nameOf(key)} is ignored: ${reason}`)
  }
  return headers
}

function decodePair (pair) {
  const equals = pair.indexOf('=')
  if (equals === -1) return ['', undefined]
  const key = pair.slice(0, equals).trim()
  try {
    return [decodeURIComponent(key), decodeURIComponent(pair.slice(equals + 1).trim())]
  } catch {
    return [key, undefined]
  }
}

// Who writes 'Authorization: Bearer …' has put the secret into what we read as the name.
function nameOf (name) {
  return TOKEN.test(name) ? `the header '${printable(name, 64)}'` : 'a header'
}

// Why a header cannot be sent, or null.
function refused (name, value) {
  if (!TOKEN.test(name)) return 'its name is not one'
  if (RESERVED.has(name.toLowerCase())) return 'the exporter sets it itself'
  if (typeof value !== 'string') return 'its value is not a string or cannot be decoded'
  if (value.length > VALUE_LENGTH_MAX) return `its value is longer than ${VALUE_LENGTH_MAX} characters`
  return FIELD_VALUE.test(value) ? null : 'its value holds control characters'
}

// User and password of the URL become a header, so that the URL can be shown. A header that was given wins.
function takeCredentials (url, headers, env) {
  if (url.username === '' && url.password === '') return
  try {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    headers.authorization ??= `Basic ${Buffer.from(pair).toString('base64')}`
  } catch {
    env.warn('LT_WARN_ENDPOINT', 'user and password in the exporter\'s URL are not percent-encoded and are not sent')
  }
  url.username = ''
  url.password = ''
}

// Removes what must not be read on the way. A proxy is one, even if the collector seems to be on this machine.
function withoutCredentials (headers, url, clearText, env, isProxied) {
  if (url.protocol === 'https:' || (isLoopback(url) && !isProxied)) return headers
  const names = Object.keys(headers).filter((name) => CREDENTIAL.test(name))
  if (names.length === 0) return headers
  const logged = printable(names.join(', '), 100)
  if (clearText) {
    env.warn('LT_WARN_INSECURE_HEADERS', `the exporter sends ${logged} in clear text, as insecureHeaders asks for`)
    return headers
  }
  for (const name of names) delete headers[name]
  env.warn('LT_WARN_INSECURE_HEADERS',
    `the exporter does not send ${logged} in clear text: use https:, or exporter.insecureHeaders: true`)
  return headers
}
