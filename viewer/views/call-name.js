'use strict'

// The name under which a call is shown. By the conventions, the span of an HTTP call may be named just `GET`, and so may that of a Redis
// call. This does not show the host, the path or the system.

const { readSomeAttributes } = require('../otlp/attributes')
const { KIND_CLIENT } = require('../otlp/names')

const KEYS = new Set([
  'db.system.name', 'db.system', 'db.query.summary', 'messaging.system', 'http.request.method', 'http.method', 'url.full', 'http.url',
  'server.address', 'net.peer.name', 'server.port', 'net.peer.port'
])
const URL_PARTS = /^[a-z]+:\/\/(?:[^@/?#]*@)?([^/?#]*)([^?#]*)/i

/**
 * @returns {{ name: string, group: string, system?: string }} `group`: the name without the parts that differ between calls; `system`: of a database
 */
function callName (span) {
  const { name } = span
  if (span.kind < KIND_CLIENT) return { name, group: name }
  const attributes = readSomeAttributes(span, KEYS)
  const text = (...keys) => String(keys.map((key) => attributes.get(key)).find((value) => value !== undefined) ?? '')
  const system = text('db.system.name', 'db.system')
  if (system !== '') return { ...same(withSystem(system, text('db.query.summary') || name)), system }
  const messaging = text('messaging.system')
  if (messaging !== '') return same(withSystem(messaging, name))
  const method = text('http.request.method', 'http.method')
  return method === '' ? same(name) : httpName(name, method, text)
}

function same (name) {
  return { name, group: name }
}

function withSystem (system, name) {
  return name.startsWith(system) ? name : `${system} ${name}`
}

function httpName (name, method, text) {
  const [, origin, path = ''] = URL_PARTS.exec(text('url.full', 'http.url')) ?? []
  const port = text('server.port', 'net.peer.port')
  const host = origin ?? text('server.address', 'net.peer.name') + (port === '' ? '' : `:${port}`)
  if (host === '') return same(name)
  if (name !== method && name !== `HTTP ${method}`) return same(`${name} ${host}`)
  return { name: `${method} ${host}${path}`, group: `${method} ${host}` }
}

module.exports = { callName }
