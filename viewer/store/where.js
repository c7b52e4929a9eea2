'use strict'

// The conditions of `where=`, as tests of traces and of log lines. condition.js has their grammar, ../api.md their meaning.

const { ProtoReader } = require('../otlp/proto-reader')
const { readKeyValue, plain } = require('../otlp/attributes')
const { kindName } = require('../otlp/span-detail')
const { BadParameter } = require('./parameters')
const { conditionOf, numberOf, SEARCHED_MAX } = require('./condition')
const { summaryOf } = require('./summary')

const CONDITIONS_MAX = 10

// Fields that hold attributes: of Resource, Span, Span.Event and LogRecord.
const OF_RESOURCE = 1
const OF_SPAN = 9
const OF_EVENT = 3
const OF_RECORD = 6
const EVENTS = 11

// How the key of a KeyValue begins: a tag, and its length in one byte.
const KEY_TAG = 0x0a
const ONE_BYTE_MAX = 0x7f

const INFO = 2 // the level of a line without one
const ERROR = 4

const ORDER = {
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '=': (a, b) => a === b
}

/** The conditions of a query. @param {URLSearchParams} query @throws BadParameter */
function conditionsOf (query) {
  const given = query.getAll('where').filter((text) => text !== '')
  if (given.length > CONDITIONS_MAX) throw new BadParameter(`where: can be given ${CONDITIONS_MAX} times at most`)
  return given.map((text) => readCondition('where', text))
}

/** @param {string} place the parameter, for the error */
function readCondition (place, text) {
  try {
    return conditionOf(text)
  } catch (error) {
    throw new BadParameter(`${place}: ${error.message}`)
  }
}

/**
 * A test of traces has functions for what it looks at. It holds if one of them returns true for the trace, or for one of its origins, lines or
 * spans. If `negated`, it holds if none does.
 * @returns {{ negated: boolean, trace?: Function, origin?: Function, line?: Function, span?: Function }}
 */
function traceTest (condition) {
  const { key, attribute, op, negated, number } = condition
  const holds = comparison(condition)
  if (attribute) {
    const held = attributeTest(key, holds)
    return { negated, origin: held.origin, span: held.span }
  }
  switch (key) {
    case 'duration': return { negated, trace: (trace) => ORDER[op](summaryOf(trace).durationMs, number) }
    case 'status': return { negated, trace: statusTest(condition, holds) }
    case 'error': return { negated, trace: ({ failed }) => failed }
    case 'name': return { negated, span: ({ name }) => holds(name) }
    case 'service': return { negated, origin: ({ service }) => holds(service) }
    case 'kind': return { negated, span: ({ kind }) => holds(kindName(kind)) }
    default: return { negated, line: linePart(condition, holds) }
  }
}

/** @returns {(line: import('./lines').StoredLine) => boolean} */
function lineTest (condition) {
  const part = linePart(condition, comparison(condition))
  return (line) => part(line) !== condition.negated
}

function linePart (condition, holds) {
  const { key, attribute, op, number } = condition
  if (attribute) {
    const held = attributeTest(key, holds)
    return (line) => held.line(line) || held.origin(line.origin)
  }
  switch (key) {
    case 'level': return op === '' ? ({ severity }) => severity !== 0 : (line) => ORDER[op](rankOf(line), number)
    case 'error': return (line) => rankOf(line) >= ERROR
    case 'body': return (line) => anyValue(plain(line.read().body), holds)
    case 'service': return ({ origin }) => holds(origin.service)
  }
  // The others are facts of requests: here, of the one that wrote the line.
  const { trace: ofTrace, span: ofSpan } = traceTest(condition)
  return ({ trace }) => trace !== null && (ofTrace?.(trace) ?? trace.spans.some(ofSpan))
}

function rankOf ({ severity }) {
  return severity === 0 ? INFO : Math.ceil(severity / 4) - 1
}

// Of the entry span, as the list shows it.
function statusTest ({ op, value, number }, holds) {
  if (op === '=' && /^(?:error|ok)$/i.test(value)) return ({ failed }) => failed === (value.toLowerCase() === 'error')
  const hundreds = op === '=' && number === undefined ? Number(value[0]) : 0
  return (trace) => {
    const { status } = summaryOf(trace)
    return status !== null && (hundreds === 0 ? holds(status) : Math.floor(status / 100) === hundreds)
  }
}

/** @returns {(value: string | number | boolean) => boolean} Numbers are compared as numbers. Text that is a number counts as one, unless it is in quotes */
function comparison ({ attribute, op, value, number }) {
  if (op === '') return (given) => attribute || given !== ''
  if (op === '=') return (given) => given === number || String(given) === value
  if (op === '~') {
    const needle = value.toLowerCase()
    return (given) => String(given).toLowerCase().includes(needle)
  }
  const compare = ORDER[op]
  if (number === undefined) return (given) => typeof given === 'string' && compare(given, value)
  return (given) => {
    const found = numberOf(given)
    return found !== undefined && compare(found, number)
  }
}

// Attributes are read only where the bytes of their key occur, because most spans do not have them.
function attributeTest (key, holds) {
  const needle = Buffer.from(key)
  const start = needle.subarray(0, SEARCHED_MAX)
  const latin = start.latin1Slice()
  const origins = new WeakMap() // thousands of traces share one
  const isHeld = (attribute) => attribute.key === key && anyValue(plain(attribute), holds)
  const someIn = (reader, wanted) => {
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (field === wanted ? hasKey(reader, needle) && isHeld(readKeyValue(reader.message())) : wanted === OF_SPAN && field === EVENTS && someIn(reader.message(), OF_EVENT)) return true
    }
    return false
  }
  return {
    origin (origin) {
      if (!origins.has(origin)) origins.set(origin, origin.resource.includes(start) && someIn(new ProtoReader(origin.resource), OF_RESOURCE))
      return origins.get(origin)
    },
    span: ({ bytes, from, to }) => bytes.subarray(from, to).includes(start) && someIn(new ProtoReader(bytes, from, to), OF_SPAN),
    line: ({ raw }) => raw.includes(latin) && someIn(new ProtoReader(Buffer.from(raw, 'latin1')), OF_RECORD)
  }
}

// The value of another key is not read, because it may be long. KeyValue begins with its key (field 1), unless a sender writes the value first.
function hasKey ({ bytes, from, to }, needle) {
  const { length } = needle
  if (to - from < 2 || bytes[from] !== KEY_TAG || bytes[from + 1] > ONE_BYTE_MAX) return true
  return bytes[from + 1] === length && bytes.compare(needle, 0, length, from + 2, from + 2 + length) === 0
}

/** Whether it holds for a value, or for an item of a list. */
function anyValue (value, holds) {
  return holds(textOf(value)) || (Array.isArray(value) && value.some((item) => holds(textOf(item))))
}

function textOf (value) {
  if (typeof value !== 'object') return value
  return value === null ? '' : JSON.stringify(value)
}

module.exports = { conditionsOf, readCondition, traceTest, lineTest }
