'use strict'

// The one door through which text from outside reaches a log line, an error message or a header of ours.
// A collector's error message or a variable's value may hold terminal escapes, line breaks that forge a
// log line, or bidirectional controls that make one read differently from what it says.

const PRINTABLE_MAX = 256

// What is looked at before filtering; without it a 100 MB message would be walked to its end.
const SCAN_MAX = 4 * PRINTABLE_MAX

const ESCAPE = 0x1b

module.exports = { printable }

function printable (value, max = PRINTABLE_MAX) {
  const text = typeof value === 'string' ? value : plainText(value)
  const end = Math.min(text.length, SCAN_MAX)
  let out = ''
  for (let i = 0; i < end && out.length < max; i++) {
    const code = text.charCodeAt(i)
    if (code === ESCAPE) i = endOfEscape(text, i, end)
    else if (isSpacing(code)) out += ' '
    else if (!isControl(code)) out += text[i]
  }
  // The cut may have halved a surrogate pair, and the text may have come with halves of its own.
  return out.toWellFormed()
}

// Objects are not asked: their toString is somebody's code.
function plainText (value) {
  if (value === null || typeof value === 'undefined') return ''
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint' ? `${value}` : `[${typeof value}]`
}

// Index of the last character of the ANSI sequence that starts at `start` (CSI: parameters, then one final byte).
function endOfEscape (text, start, end) {
  if (text[start + 1] !== '[') return start
  let i = start + 2
  while (i < end && text.charCodeAt(i) >= 0x20 && text.charCodeAt(i) <= 0x3f) i++
  return i
}

// Tab, line breaks, and Unicode's line and paragraph separators: a blank keeps the words apart.
function isSpacing (code) {
  return (code >= 0x09 && code <= 0x0d) || code === 0x85 || code === 0x2028 || code === 0x2029
}

function isControl (code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || // C0, DEL, C1
    code === 0x061c || code === 0x200e || code === 0x200f || // Arabic letter mark, LRM, RLM
    (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || // embeddings, overrides, isolates
    code === 0xfeff
}
