'use strict'

// The gist of a statement, for a span's name: operations and their tables in order, "SELECT orders users".
// https://opentelemetry.io/docs/specs/semconv/database/database-spans/#generating-a-summary-of-the-query

const LENGTH_MAX = 255
const NESTING_MAX = 64

// What begins a statement, or one inside another.
const OPERATIONS = new Set(['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'MERGE'])
const BEFORE_TABLE = new Set(['FROM', 'INTO', 'JOIN', 'TABLE', 'UPDATE', 'MERGE'])
// Words between one of these and the table's name.
const FILLERS = new Set(['IF', 'NOT', 'EXISTS', 'ONLY', 'IGNORE', 'LOW_PRIORITY', 'DELAYED', 'QUICK', 'INTO', 'TABLE', 'OVERWRITE', 'TEMPORARY', 'TOP', 'OR', 'REPLACE', 'ABORT', 'FAIL', 'ROLLBACK'])
const TABLE_OPERATIONS = new Set(['CREATE', 'DROP', 'ALTER', 'TRUNCATE'])

class Summary {
  constructor () {
    this.parts = []
    this.operations = 0
    this.expectsTable = false
    this.isFirst = true // of its statement
    this.lastWord = ''
    this.lastName = ''
    this.inList = false // of an IN
    this.depth = 0
    this.selects = [] // the depths at which a FROM belongs to a statement, not to a function
    this.names = null // of common table expressions: no tables
  }

  word (text) {
    const word = text.length <= 16 ? text.toUpperCase() : ''
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
    if (this.selects.length < NESTING_MAX) this.selects.push(this.depth)
    this.expectsTable = word === 'UPDATE' || word === 'MERGE'
    if (TABLE_OPERATIONS.has(word)) this.selects.pop()
  }

  expectTable (word) {
    if (word === 'FROM' && (this.lastWord === 'DISTINCT' || this.selects.at(-1) !== this.depth)) return
    if (word === 'UPDATE' && this.lastWord !== 'DO') { // FOR UPDATE, ON DUPLICATE KEY UPDATE
      return
    }
    if (word === 'TABLE' && this.operations === 1 && this.parts.length === 1) this.add('TABLE')
    this.expectsTable = word !== 'UPDATE'
  }

  table (text) {
    this.expectsTable = false
    if (this.names !== null && this.names.has(text)) return
    const name = text.replaceAll(/[`"[\]]/g, '')
    this.add(name)
  }

  add (part) {
    if (this.parts.length < 32) this.parts.push(part)
  }

  finish (text) {
    let summary = this.parts.join(' ')
    if (summary.length > LENGTH_MAX) summary = summary.slice(0, summary.lastIndexOf(' ', LENGTH_MAX))
    return { text, summary }
  }
}

module.exports = { Summary }
