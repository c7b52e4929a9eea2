'use strict'

// Keeps secrets that we send to a collector or a proxy out of the log when a response repeats them.

// The text of a response is first made printable and then searched, so that the searched text is the logged text. A secret in it is
// overwritten with asterisks. If it contains a secret in any other form (split, in part, in another case, escaped, as base64 or bytes),
// the whole text is omitted.

const { printable, SCAN_MAX } = require('../../runtime/report.js')

// Shorter texts occur anywhere by chance.
const SECRET_LENGTH_MIN = 4
const PART_LENGTH_MIN = 6
const PIECE_LENGTH = 8 // this many consecutive letters and digits of a longer secret count as the secret

const NOT_QUOTED = '(not quoted: it repeats a header or a part of the URL)'

const SCHEME = /^[a-z-]+ +(?=\S)/i // as in `Bearer ...`: not secret, since a collector may name the scheme that it expects

// Escapes may be nested: an error page may quote a URL in JSON, and a gateway may quote that JSON in its own. Each layer decodes one kind
// of escape, because a value may look like another kind.
const LAYERS_MAX = 2
/** @type {[RegExp, number][]} each with the radix of its character code */
const ESCAPES = [
  [/\\(?:u([0-9a-f]{4})|[^ux])/gi, 16],
  [/\\x([0-9a-f]{2})/gi, 16],
  [/%([0-9a-f]{2})/gi, 16],
  [/&(?:#x([0-9a-f]{1,8});?|[a-z]+;)/gi, 16],
  [/&#(\d{1,8});?/g, 10]
]

/** Returns the values of the headers and of the query, the user and password in them, and the words of each, longest first. */
function secretsOf ({ url, headers }, proxy) {
  const { search, searchParams } = new URL(url)
  const query = search.slice(1).split('&').map((pair) => pair.slice(pair.indexOf('=') + 1))
  const values = [...Object.values(headers), proxy?.authorization ?? '', ...query, ...searchParams.values()].flatMap((value) => {
    if (!/^basic /i.test(value)) return value
    const user = Buffer.from(value.slice(6), 'base64').toString()
    return [value, user, user.slice(user.indexOf(':') + 1)]
  })
  const words = values.flatMap((value) => value.replace(SCHEME, '').split(/[\s,;=:]+/)).filter(({ length }) => length >= PART_LENGTH_MIN)
  const texts = [...values, ...words].filter(({ length }) => length >= SECRET_LENGTH_MIN)
  return [...new Set(texts)].sort((a, b) => b.length - a.length)
}

/** Returns the text of a collector or a proxy in a form that is safe to log. */
function quoted (text, secrets, max = undefined) {
  let shown = printable(text, SCAN_MAX)
  for (const secret of secrets) shown = shown.replaceAll(secret, '*'.repeat(secret.length))
  return holds(shown, secrets, secrets.flatMap(formsOf)) ? NOT_QUOTED : printable(shown, max)
}

function holds (text, secrets, forms, layers = 0) {
  if (secrets.some((secret) => text.includes(secret)) || holdsForm(lettersOf(text), forms)) return true
  if (layers === LAYERS_MAX) return false
  return ESCAPES.some(([escape, radix]) => text.search(escape) !== -1 && holds(unescaped(text, escape, radix), secrets, forms, layers + 1))
}

function holdsForm (letters, forms) {
  const pieces = new Set()
  for (let at = 0; at + PIECE_LENGTH <= letters.length; at++) pieces.add(letters.slice(at, at + PIECE_LENGTH))
  return forms.some((form) => {
    if (form.length < PIECE_LENGTH) return letters.includes(form)
    for (let at = 0; at + PIECE_LENGTH <= form.length; at++) if (pieces.has(form.slice(at, at + PIECE_LENGTH))) return true
    return false
  })
}

/** Returns the secret itself, and its bytes in hexadecimal, decimal and base64. Base64 has three forms, depending on the start offset. */
function formsOf (secret) {
  const forms = [secret]
  for (const bytes of [Buffer.from(secret), Buffer.from(secret, 'latin1')]) {
    forms.push(bytes.toString('hex'), bytes.join(''))
    for (const skipped of [0, 1, 2]) {
      const base64 = Buffer.concat([Buffer.alloc(skipped), bytes]).toString('base64')
      forms.push(base64.slice(skipped && skipped + 1, Math.floor((skipped + bytes.length) * 4 / 3)))
    }
  }
  return forms.map(lettersOf).filter(({ length }) => length >= SECRET_LENGTH_MIN)
}

function lettersOf (text) { return text.toLowerCase().replace(/[^a-z0-9]/g, '') }

function unescaped (text, escape, radix) {
  return text.replaceAll(escape, (_, digits) => {
    const code = parseInt(digits, radix) // NaN for an escape without a number, such as \n or &amp;
    return code <= 0x10ffff ? String.fromCodePoint(code) : ''
  })
}

module.exports = { secretsOf, quoted }
