'use strict'

// Sanitises a statement for recording: values become `?`, comments are removed, everything else is unchanged. It makes one pass over
// the characters and limits what it reads and writes. The same pass collects keywords and tables for the summary, "SELECT users",
// which names the span.
// https://opentelemetry.io/docs/specs/semconv/database/database-spans/#sanitization-of-dbquerytext

const READ_MAX = 16384
const WRITTEN_MAX = 4096
const SUMMARY_MAX = 255
const PARTS_MAX = 32
const NESTING_MAX = 64

// Words that begin a statement or a nested one. They are part of the summary.
const OPERATIONS = new Set(['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'MERGE'])
const BEFORE_TABLE = new Set(['FROM', 'INTO', 'JOIN', 'TABLE', 'UPDATE', 'MERGE'])
// Words that may come between one of these and the table's name.
const FILLERS = new Set(['IF', 'NOT', 'EXISTS', 'ONLY', 'IGNORE', 'LOW_PRIORITY', 'DELAYED', 'QUICK', 'INTO', 'TABLE', 'OVERWRITE',
  'TEMPORARY', 'TOP', 'OR', 'REPLACE', 'ABORT', 'FAIL', 'ROLLBACK'])
const TABLE_OPERATIONS = new Set(['CREATE', 'DROP', 'ALTER', 'TRUNCATE'])

/**
 * A short summary of a statement, for a span's name: operations and their tables in order, "SELECT orders users".
 * https://opentelemetry.io/docs/specs/semconv/database/database-spans/#generating-a-summary-of-the-query
 */
class Summary {
  parts = []
  operations = 0
  expectsTable = false
  isFirst = true // whether the next word is the first of a statement
  lastWord = ''
  lastName = ''
  inList = false // in the list of an IN
  depth = 0
  selects = [] // the depths at which a FROM belongs to a statement and not to a function
  names = null // common table expressions, which are not tables

  /** @param {string} word the text in capitals, '' if it is too long for a keyword */
  word (text, word) {
    if (this.isFirst) this.begin(word, text)
    else if (OPERATIONS.has(word) && (this.lastWord === '(' || this.lastWord === ')' || word === 'SELECT')) this.operation(word)
    else if (BEFORE_TABLE.has(word)) this.expectTable(word)
    else if (this.expectsTable && !FILLERS.has(word)) this.table(text)
    else if (word === 'AS' && this.names !== null) this.names.add(this.lastName)
    if (word === '' || !BEFORE_TABLE.has(word)) this.lastName = text
    this.lastWord = word
  }

  sign (char) {
    if (char === 0x28) { // (
      this.depth++
      this.inList = this.lastWord === 'IN'
      this.expectsTable = false
      this.lastWord = '('
    } else if (char === 0x29) { // )
      this.depth--
      this.inList = false
      while (this.selects.length > 0 && this.selects.at(-1) > this.depth) this.selects.pop()
      this.lastWord = ')'
    } else if (char === 0x3b) { // ;
      this.isFirst = true
    }
  }

  begin (word, text) {
    this.isFirst = false
    if (word === 'WITH') {
      this.names = new Set(['RECURSIVE'])
      return
    }
    if (word === 'EXPLAIN') this.isFirst = true
    this.operation(word === '' ? text : word)
  }

  operation (word) {
    this.operations++
    this.add(word)
    if (this.selects.length < NESTING_MAX && !TABLE_OPERATIONS.has(word)) this.selects.push(this.depth)
    this.expectsTable = word === 'UPDATE' || word === 'MERGE'
  }

  expectTable (word) {
    if (word === 'FROM' && (this.lastWord === 'DISTINCT' || this.selects.at(-1) !== this.depth)) return
    if (word === 'UPDATE' && this.lastWord !== 'DO') return // FOR UPDATE, ON DUPLICATE KEY UPDATE
    if (word === 'TABLE' && this.operations === 1 && this.parts.length === 1) this.add('TABLE')
    this.expectsTable = word !== 'UPDATE'
  }

  table (text) {
    this.expectsTable = false
    if (this.names === null || !this.names.has(text)) this.add(text.replaceAll(/[`"[\]]/g, ''))
  }

  add (part) {
    if (this.parts.length < PARTS_MAX) this.parts.push(part)
  }

  finish (text) {
    let summary = this.parts.join(' ')
    if (summary.length > SUMMARY_MAX) summary = summary.slice(0, summary.lastIndexOf(' ', SUMMARY_MAX))
    return { text, summary }
  }
}

/**
 * The syntax of each system. If quoted text may be a name or a value, it is treated as a value.
 * doubleQuotes: "x" is a string; backslash: \ escapes in strings; brackets: [x] is a name;
 * dollar: $tag$...$tag$ is a string; hash: # begins a comment; nests: comments may be nested;
 * modes: a setting of the server decides whether \ escapes
 */
const DIALECTS = {
  mysql: { doubleQuotes: true, backslash: true, brackets: false, dollar: false, hash: true, modes: true },
  postgresql: { doubleQuotes: false, backslash: false, brackets: false, dollar: true, hash: false, nests: true },
  mssql: { doubleQuotes: false, backslash: false, brackets: true, dollar: false, hash: false, nests: true },
  sqlite: { doubleQuotes: true, backslash: false, brackets: true, dollar: false, hash: false },
  graphql: { doubleQuotes: true, backslash: true, brackets: false, dollar: false, hash: true }
}

const BACKSLASH = 0x5c
const QUOTE = 0x27
const DOUBLE = 0x22
const BACKTICK = 0x60

/** @returns {{ text: string, summary: string }} */
function sanitise (statement, dialect) {
  const text = statement.length > READ_MAX ? statement.slice(0, READ_MAX) : statement
  const summary = new Summary()
  let written = ''
  let from = 0 // the text from here to `i` is kept unchanged
  let i = 0
  let setting = '' // the statement's verb; in one that sets something, its progress: ALTER, SET, then TO or =

  while (i < text.length && written.length + i - from < WRITTEN_MAX) {
    const char = text.charCodeAt(i)
    if (isSpace(char)) {
      i++
    } else if (char === QUOTE || (char === DOUBLE && dialect.doubleQuotes)) {
      value(dialect.modes && isEitherWay(text, i, char) ? text.length : endOfString(text, i, char, dialect.backslash))
    } else if (beginsName(char, dialect)) {
      name()
    } else if (isDigit(char) || (char === 0x2e && isDigit(text.charCodeAt(i + 1)))) {
      value(endOfNumber(text, i))
    } else if (char === 0x24 && dialect.dollar && !isDigit(text.charCodeAt(i + 1))) { // $
      value(endOfDollar(text, i))
    } else if (char === 0x3f) { // ? is a value already
      value(i + 1)
    } else if (char === 0x24 || char === 0x3a || char === 0x40) { // $1, :name, @name
      i = endOfName(text, i + 1)
    } else if (commentEnd(char) !== -1) {
      written += `${text.slice(from, i)} `
      from = i = commentEnd(char)
    } else {
      if (char === 0x3d && setting === 'SET') setting = '='
      summary.sign(char)
      i++
    }
  }
  written += text.slice(from, i)
  return summary.finish(written.length > WRITTEN_MAX ? written.slice(0, WRITTEN_MAX) : written.trim().toWellFormed())

  function value (end) {
    const gap = text.slice(from, i)
    // The values of an IN list become one `?`, or lists of different lengths would give different statements.
    if (!(summary.inList && written.endsWith('?') && /^\s*,\s*$/.test(gap))) written += `${gap}?`
    from = i = end
  }

  function name () {
    const start = i
    i = endOfPath(text, i, dialect)
    // The letters before a quote belong to the string: E'', N'', X'', _utf8''.
    const next = text.charCodeAt(i)
    if (next === QUOTE && i - start <= 16) value(endOfString(text, i, QUOTE, dialect.backslash || /^e$/i.test(text.slice(start, i))))
    else word(start, text.slice(start, i))
  }

  // The value of a setting may be a word without quotes.
  function word (start, text) {
    const name = text.length <= 16 ? text.toUpperCase() : ''
    if (summary.isFirst) setting = name
    else if (setting === 'ALTER' && name === 'SET') setting = 'SET'
    else if (setting === 'SET' && name === 'TO') setting = '='
    else if (setting === '=') {
      const end = i
      i = start
      value(end)
      return
    }
    summary.word(text, name)
  }

  function commentEnd (char) {
    const next = text.charCodeAt(i + 1)
    if ((char === 0x2d && next === 0x2d) || (char === 0x23 && dialect.hash)) return endOr(text, '\n', i + 1, 0)
    if (char === 0x2f && next === 0x2a) return dialect.nests ? endOfNested(text, i + 2) : endOr(text, '*/', i + 2, 2)
    return -1
  }
}

function endOfNested (text, at) {
  for (let depth = 1; depth > 0; at += 2) {
    while (at < text.length && !text.startsWith('*/', at) && !text.startsWith('/*', at)) at++
    if (at >= text.length) return text.length
    depth += text.charCodeAt(at) === 0x2f ? 1 : -1
  }
  return at
}

/** Whether the end of a string depends on whether a backslash escapes. If so, the rest of the statement is treated as a value. */
function isEitherWay (text, start, quote) {
  return endOfString(text, start, quote, true) !== endOfString(text, start, quote, false)
}

function endOr (text, mark, at, length) {
  const end = text.indexOf(mark, at)
  return end === -1 ? text.length : end + length
}

/** The position after the closing quote. A doubled quote is part of the string. """ begins a block string in GraphQL. */
function endOfString (text, start, quote, backslash) {
  if (quote === DOUBLE && text.startsWith('"""', start)) return endOr(text, '"""', start + 3, 3)
  for (let i = start + 1; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === BACKSLASH && backslash) {
      i++
    } else if (char === quote) {
      if (text.charCodeAt(i + 1) !== quote) return i + 1
      i++
    }
  }
  return text.length
}

function endOfNumber (text, start) {
  let i = start
  while (i < text.length) {
    const char = text.charCodeAt(i)
    const isSign = (char === 0x2b || char === 0x2d) && (text.charCodeAt(i - 1) | 0x20) === 0x65 && text.charCodeAt(start + 1) !== 0x78
    if (!isNamePart(char) && char !== 0x2e && !isSign) return i
    i++
  }
  return i
}

function endOfDollar (text, start) {
  let tagEnd = start + 1
  while (tagEnd < text.length && isNamePart(text.charCodeAt(tagEnd)) && text.charCodeAt(tagEnd) !== 0x24) tagEnd++
  if (text.charCodeAt(tagEnd) !== 0x24) return tagEnd
  return endOr(text, text.slice(start, tagEnd + 1), tagEnd + 1, tagEnd + 1 - start)
}

/** The end of a name with its qualifiers: shop.users, `shop`.`users`, [dbo].[users]. */
function endOfPath (text, i, dialect) {
  for (;;) {
    const char = text.charCodeAt(i)
    if (char === BACKTICK || (char === DOUBLE && !dialect.doubleQuotes)) i = endOfString(text, i, char, false)
    else if (char === 0x5b && dialect.brackets) i = endOr(text, ']', i + 1, 1)
    else i = endOfName(text, i)
    if (text.charCodeAt(i) !== 0x2e || !beginsName(text.charCodeAt(i + 1), dialect)) return i
    i++
  }
}

function endOfName (text, i) {
  while (i < text.length && isNamePart(text.charCodeAt(i))) i++
  return i
}

const isNameStart = (char) => (char >= 0x61 && char <= 0x7a) || (char >= 0x41 && char <= 0x5a) || char === 0x5f || char >= 0x80

/** Whether `char` begins a name, quoted or not. */
function beginsName (char, dialect) {
  if (char === DOUBLE) return !dialect.doubleQuotes
  return isNameStart(char) || char === BACKTICK || (char === 0x5b && dialect.brackets)
}

const isNamePart = (char) => isNameStart(char) || isDigit(char) || char === 0x24

const isDigit = (char) => char >= 0x30 && char <= 0x39

const isSpace = (char) => char === 0x20 || (char >= 0x09 && char <= 0x0d)

module.exports = { sanitise, DIALECTS }
