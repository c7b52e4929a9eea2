'use strict'

// Which request and response headers become attributes: none but those that are named, and never those
// that carry credentials, whoever names them.

const { listOf, wrongValue } = require('./checks')

// RFC 9110's token.
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/
// What Node's http sends and takes in a value: no control characters, so no line of its own.
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

// Names under which credentials travel, whatever their prefix or vendor; the exporter's own headers are judged by it too.
// Tenant and routing headers (x-scope-orgid) do not match.
const CREDENTIAL = /auth|cookie|credential|dsn|key|passw|secret|session|signature|team|token/

const checkHeaderNames = listOf((path, value) => {
  if (typeof value !== 'string' || !TOKEN.test(value)) throw wrongValue(path, 'the name of a header', value)
  return value.toLowerCase()
})

module.exports = { CREDENTIAL, TOKEN, FIELD_VALUE, checkHeaderNames, capturedHeaders }

function capturedHeaders (option, names, env) {
  const captured = new Set()
  for (const name of names) {
    if (!CREDENTIAL.test(name)) captured.add(name)
    else env.warn('LT_WARN_HEADER_DENIED', `${option}: '${name}' carries credentials and is not recorded`)
  }
  return Object.freeze([...captured])
}
