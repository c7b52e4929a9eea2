'use strict'

// Makes a sender's text safe for a terminal or a text view: it stays on one line, and has no control characters (which could drive the
// terminal) and no marks that change the text direction. They are shown escaped, for example as \u202e.

// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/gu

/** Escaped JSON still parses to the same value. */
function escaped (text) {
  return text.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** JSON that is safe in a terminal. @param {any} value */
function jsonText (value) {
  return escaped(JSON.stringify(value))
}

function safeText (text, max = 200) {
  const safe = escaped(text.slice(0, max + 1))
  return text.length > max ? `${safe.slice(0, max)}…` : safe
}

function plural (count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

module.exports = { escaped, jsonText, plural, safeText }
