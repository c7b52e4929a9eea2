'use strict'

// Which request and response headers become attributes: none but those that are named, and never those
// that carry credentials, whoever names them.

const { listOf } = require('./checks')
const { optionInvalid, describeValue } = require('./errors')

// RFC 9110's token.
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/
// What Node's http sends and takes in a value: no control characters, so no line of its own.
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

const DENIED = new Set([
  'authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'x-api-key', 'x-amz-security-token'
])

const checkHeaderNames = listOf((path, value) => {
  if (typeof value !== 'string' || !TOKEN.test(value)) throw optionInvalid(path, 'the name of a header', describeValue(value))
  return value.toLowerCase()
})

module.exports = { TOKEN, FIELD_VALUE, checkHeaderNames, capturedHeaders }

function capturedHeaders (option, names = [], env) {
  const captured = new Set()
  for (const name of names) {
    if (!isDenied(name)) captured.add(name)
    else env.warn('LT_WARN_HEADER_DENIED', `${option}: '${name}' carries credentials and is not recorded`)
  }
  return Object.freeze([...captured])
}

function isDenied (name) {
  return DENIED.has(name) || name.endsWith('-token') || name.endsWith('-secret')
}
