'use strict'

// Redacts the query of a request in the lines that Fastify itself writes: in `req.url` and in the message of a 404. Spans redact it too.
// It is found in the text of the line, because records are made from the text. In JSON, a quotation mark inside a string is escaped.

const { attempt } = require('../../runtime/report.js')

const REQ = '"req":{'
const URL = '"url":"'
const ROUTE = 'Route '
const NOT_FOUND = ' not found"'

/**
 * Redacts a line before it leaves the process. HOT, once per line where lines are exported.
 * @param {string} line @param {import('../../http/redact').QueryRedactor} redactor
 */
function redactedLine (line, redactor) {
  return line.includes('?') ? redactRoute(redactReq(line, redactor), redactor) : line
}

function redactReq (line, redactor) {
  const at = line.indexOf(REQ)
  const start = at === -1 ? -1 : line.indexOf(URL, at)
  return start === -1 ? line : redactText(line, start + URL.length, endOfString(line, start + URL.length), redactor)
}

function redactRoute (line, redactor) {
  const end = line.lastIndexOf(NOT_FOUND)
  const start = end === -1 ? -1 : line.lastIndexOf(ROUTE, end)
  const isOneString = start !== -1 && endOfString(line, start) === end + NOT_FOUND.length - 1
  return isOneString ? redactText(line, start, end, redactor) : line
}

/** The index of the quotation mark that closes a string. */
function endOfString (line, at) {
  while (at < line.length && line[at] !== '"') at += line[at] === '\\' ? 2 : 1
  return at
}

function redactText (line, start, end, redactor) {
  const text = line.slice(start, end)
  const redacted = text.includes('\\') ? redactEscaped(text, redactor) : redactor.redactUrl(text)
  return redacted === text ? line : line.slice(0, start) + redacted + line.slice(end)
}

function redactEscaped (text, redactor) {
  const unescaped = attempt(() => JSON.parse(`"${text}"`))
  return unescaped === undefined ? redactor.redactUrl(text) : JSON.stringify(redactor.redactUrl(unescaped)).slice(1, -1)
}

module.exports = { redactedLine }
