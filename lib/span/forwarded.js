'use strict'

// RFC 7239's Forwarded, as the X-Forwarded-* headers that Fastify's trustProxy understands: it decides how far back to
// trust. https://www.rfc-editor.org/rfc/rfc7239

const { isIP } = require('node:net')

const LENGTH_MAX = 4096

// token=token or token="quoted string", with ; between the pairs of one proxy and , between proxies.
const PAIR = /[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^",; \t]*)))?[ \t]*([;,]|$)/y

/**
 * @param {string} header
 * @param {object} headers of the request
 * @returns {object | null} headers for trustProxy; null where it cannot be read
 */
function asForwardedHeaders (header, headers) {
  if (typeof header !== 'string' || header.length > LENGTH_MAX) return null
  const clients = []
  let host = headers['x-forwarded-host']
  let proto = headers['x-forwarded-proto']
  let client = ''
  let hasPairs = false
  PAIR.lastIndex = 0
  for (;;) {
    const match = PAIR.exec(header)
    if (match === null) return null
    const [, name, quoted, token, end] = match
    const value = quoted === undefined ? token : quoted.replaceAll(/\\(.)/g, '$1')
    switch (name?.toLowerCase()) {
      case 'for': client = value; break
      case 'host': host = value; break
      case 'proto': proto = value; break
    }
    hasPairs ||= name !== undefined
    if (end === ';') continue
    if (hasPairs) clients.push(withoutPort(client) || 'unknown')
    client = ''
    hasPairs = false
    if (end === '') break
  }
  if (clients.length === 0) return null
  return { host: headers.host, ':authority': headers[':authority'], 'x-forwarded-for': clients.join(', '), 'x-forwarded-host': host, 'x-forwarded-proto': proto }
}

/** An IP address without port, brackets and zone; '' where there is none: `unknown`, `_hidden`. */
function withoutPort (text) {
  let address = text
  if (text.startsWith('[')) address = text.slice(1, text.indexOf(']'))
  else if (text.includes('.') && text.includes(':') && !text.includes('::')) address = text.slice(0, text.indexOf(':'))
  const zone = address.indexOf('%')
  if (zone !== -1) address = address.slice(0, zone)
  return isIP(address) === 0 ? '' : address
}

module.exports = { asForwardedHeaders, withoutPort }
