'use strict'

// Query redaction as the HTTP conventions ask for it: the values of signature parameters become REDACTED,
// everything else keeps its bytes (a URLSearchParams round trip would re-encode them).
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/ , note on `url.query`

const SENSITIVE = ['AWSAccessKeyId', 'Signature', 'sig', 'X-Goog-Signature', 'X-Amz-Signature', 'X-Amz-Credential', 'X-Amz-Security-Token']

/**
 * @param {string} query without its question mark
 * @returns {string}
 */
function redactQuery (query) {
  if (!mayHoldSecret(query)) return query
  const parameters = query.split('&')
  for (let i = 0; i < parameters.length; i++) {
    const equals = parameters[i].indexOf('=')
    if (equals !== -1 && SENSITIVE.includes(decodeKey(parameters[i].slice(0, equals)))) {
      parameters[i] = parameters[i].slice(0, equals + 1) + 'REDACTED'
    }
  }
  return parameters.join('&')
}

// Every sensitive key has one of these in it, unless it is percent-encoded.
function mayHoldSecret (query) {
  return query.includes('ig') || query.includes('X-Amz-') || query.includes('AWS') || query.includes('%')
}

function decodeKey (key) {
  if (!key.includes('%')) return key
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

module.exports = { redactQuery, SENSITIVE }
