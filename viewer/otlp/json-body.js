'use strict'

// The text of a body of JSON. Parsed, each of its values takes many times its bytes: `{},` has three, and its object 60.

const { Malformed } = require('./proto-reader')

// A body of the largest size has fewer if it is of an app: a value to about 14 bytes.
const VALUES_MAX = 4_000_000

const [QUOTE, BACKSLASH, COMMA, OBJECT, LIST] = Buffer.from('"\\,{[')

/** @param {Buffer} body @returns {string} @throws Malformed if it has too many values */
function bodyText (body) {
  if (body.length > VALUES_MAX && hasTooMany(body)) throw new Malformed(`the body has more than ${VALUES_MAX.toLocaleString('en')} values`)
  return body.toString()
}

// Each value follows a comma, or is the first in an object or a list.
function hasTooMany (body) {
  let values = 0
  for (let at = 0; at < body.length && values <= VALUES_MAX; at++) {
    const byte = body[at]
    if (byte === COMMA || byte === OBJECT || byte === LIST) values++
    else if (byte === QUOTE) at = endOf(body, at + 1)
  }
  return values > VALUES_MAX
}

/** Where the text that starts here ends. */
function endOf (body, at) {
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1
  return at
}

module.exports = { bodyText, VALUES_MAX }
