'use strict'

// What is sent to a collector or a proxy, and nobody is to read in a log if it says it back.

// Shorter ones are in any text by chance.
const SECRET_LENGTH_MIN = 4
const PART_LENGTH_MIN = 6

// An error page may quote a URL in JSON, a gateway such JSON in its own. One kind at a time: a value may look like the other.
const LAYERS_MAX = 2
const ESCAPES = [/\\(?:u([0-9a-f]{4})|([^u]))/gi, /%([0-9a-f]{2})/gi]

/** The values of headers and of the query, the user and password in them, and the words of each: bytes, written as latin1. */
function secretsOf ({ url, headers }, proxy) {
  const { search, searchParams } = new URL(url)
  const query = search.slice(1).split('&').map((pair) => pair.slice(pair.indexOf('=') + 1))
  const values = [...Object.values(headers), proxy?.authorization ?? '', ...query, ...searchParams.values()].flatMap((value) => {
    if (!/^basic /i.test(value)) return value
    const user = Buffer.from(value.slice(6), 'base64').toString()
    return [value, user, user.slice(user.indexOf(':') + 1)]
  })
  const words = values.flatMap((value) => value.split(/[\s,;=:]+/)).filter(({ length }) => length >= PART_LENGTH_MIN)
  const texts = [...values, ...words].filter(({ length }) => length >= SECRET_LENGTH_MIN)
  return [...new Set(texts.flatMap((text) => [Buffer.from(text).toString('latin1'), text]))]
}

/** Overwrites secrets in `bytes`, as they are or escaped, with as many asterisks: the lengths in an answer still hold. */
function hide (bytes, secrets, text = bytes.toString('latin1'), starts = null, layers = 0) {
  for (const secret of secrets) {
    for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + secret.length)) {
      const end = at + secret.length
      bytes.fill('*', starts?.[at] ?? at, starts?.[end] ?? end)
    }
  }
  if (layers === LAYERS_MAX) return bytes
  for (const escapes of ESCAPES) {
    if (text.search(escapes) !== -1) hide(bytes, secrets, ...unescaped(text, starts, escapes), layers + 1)
  }
  return bytes
}

/** A text without its escapes, and where in the bytes each of its characters begins. */
function unescaped (text, before, escapes) {
  const starts = new Uint32Array(text.length + 1) // no escape is shorter than what it stands for
  let plain = ''
  let at = 0
  const add = (part, step) => {
    for (let i = 0; i < part.length; i++) starts[plain.length + i] = before?.[at + i * step] ?? at + i * step
    plain += part
  }
  for (const { 0: escape, 1: code, 2: character, index } of text.matchAll(escapes)) {
    add(text.slice(at, index), 1)
    at = index
    add(character ?? charactersOf(code), 0)
    at += escape.length
  }
  add(text.slice(at), 1)
  starts[plain.length] = before?.[text.length] ?? text.length
  return /** @type {const} */ ([plain, starts])
}

// Of JSON, four digits of a character of UTF-16; of a URL, two of a byte.
function charactersOf (code) {
  const character = String.fromCharCode(parseInt(code, 16))
  return code.length === 2 ? character : Buffer.from(character).toString('latin1')
}

module.exports = { secretsOf, hide }
