'use strict'

// Searches the stored traces and log lines. Most tests compare a field of the summary, which is fast. `q`, and `where` with an attribute, read
// the bytes of spans and lines.

const { readSpan, readResource, readScope } = require('../otlp/span-detail')
const { plain } = require('../otlp/attributes')
const { BadParameter, interval } = require('./parameters')
const { Slices } = require('./slices')
const { SEARCHED_MAX } = require('./condition')
const { conditionsOf, readCondition, traceTest, lineTest } = require('./where')
const { startOf, summaryOf, routeOf } = require('./summary')

/** What every trace must pass. */
class Filter {
  #tests

  /** @param {object[]} tests see traceTest in where.js. Those that read nothing come first */
  constructor (tests) {
    this.#tests = tests.sort((a, b) => Number(reads(a)) - Number(reads(b)))
  }

  /**
   * Does not let other work run in between.
   * @param {number} max how many origins, lines and spans may be read
   * @returns {{ matches: boolean | undefined, read: number }} undefined if more would have to be read
   */
  matchesWithin (trace, max) {
    const steps = this.steps(trace)
    let read = 0
    let step = steps.next()
    for (; !step.done && read < max; step = steps.next()) read++
    return { matches: step.done ? step.value : undefined, read }
  }

  /** Stops before each origin, line and span that it reads, because a trace may have 10,000 spans. @returns {Generator<void, boolean>} */
  * steps (trace) {
    for (const test of this.#tests) if ((yield * found(test, trace)) === test.negated) return false
    return true
  }
}

function reads ({ origin, line, span }) {
  return (origin ?? line ?? span) !== undefined
}

function * found ({ trace: test, origin, line, span }, trace) {
  if (test?.(trace)) return true
  if (origin !== undefined && (yield * someOf(trace.origins, origin))) return true
  if (line !== undefined && (yield * someOf(trace.lines, line))) return true
  return span !== undefined && (yield * someOf(trace.spans, span))
}

function * someOf (list, test) {
  for (let i = 0; i < list.length; i++) {
    yield
    if (test(list[i])) return true
  }
  return false
}

/**
 * The stored traces that match, newest first, for `for await`. Other work runs in between.
 */
class Search {
  #store
  #filter
  #before
  #slices
  #maxMs
  /** Where the search can go on, if it took longer than `maxMs`. */
  stoppedBefore = null

  constructor (store, filter, { before = Infinity, maxMs = Infinity, sliceMs = undefined } = {}) {
    this.#store = store
    this.#filter = filter
    this.#before = before
    this.#maxMs = maxMs
    this.#slices = new Slices(sliceMs)
  }

  async * [Symbol.asyncIterator] () {
    const slices = this.#slices
    for (const trace of this.#store.newestFirst(this.#before)) {
      if (slices.isDue) {
        if (slices.tookMs > this.#maxMs) {
          this.stoppedBefore = trace.order + 1
          return
        }
        await slices.rest()
      }
      if (await slices.run(this.#filter.steps(trace))) yield trace
    }
  }
}

/**
 * The filter of GET /api/traces.
 * @param {URLSearchParams} query
 * @returns {Filter} @throws BadParameter
 */
function filterOf (query, nowMs = Date.now()) {
  const tests = conditionsOf(query).map(traceTest)
  const add = (name, make) => { if (query.get(name)) tests.push(make(query.get(name), name)) }
  const short = (value, name) => traceTest(readCondition(name, `${name} = ${value}`))
  add('status', short)
  add('service', (service) => traceTest({ key: 'service', attribute: false, op: '=', negated: false, value: service }))
  add('route', (route) => traceOnly(({ spans }) => spans.some((span) => routeOf(span) === route || (span.kind === 2 && routeOf(span) === null && span.name === route))))
  add('unrouted', () => traceOnly((trace) => summaryOf(trace).unrouted))
  add('exception', (key) => traceOnly(({ faults }) => faults !== null && faults.some((fault) => fault.key === key)))
  add('q', textTest)
  const within = interval(query, nowMs)
  if (within !== null) tests.push(withinTest(within))
  return new Filter(tests)
}

function traceOnly (trace) {
  return { negated: false, trace }
}

/** A trace is in an interval if it started in it. */
function withinTest (within) {
  return traceOnly((trace) => isWithin(within, startOf(trace)))
}

function isWithin ({ fromMs, toMs }, ms) {
  return ms >= fromMs && ms <= toMs
}

function textTest (text) {
  const { needle, mayHave, found } = finderOf(text)
  const isId = /^[0-9a-f]{8,32}$/.test(needle)
  return {
    negated: false,
    trace: ({ id }) => isId && id.startsWith(needle),
    origin: ({ resource, scope }) => readResource(resource).some((attribute) => attributeHas(attribute, found)) || found(readScope(scope).name),
    line: (line) => lineHas(line, mayHave, found),
    span: (span) => (isId && span.id.startsWith(needle)) || found(span.name) || spanHas(span, mayHave, found)
  }
}

/** @returns {{ needle: string, mayHave: (raw: string) => boolean, found: (value, key?: string) => boolean }} mayHave: by its bytes as Latin-1 text, which are cheap to search */
function finderOf (text) {
  const needle = text.toLowerCase()
  if (needle.length > SEARCHED_MAX) throw new BadParameter(`q: must have at most ${SEARCHED_MAX} characters`)
  const [, key, start] = /^([^\s=]+)=(.*)$/.exec(needle) ?? []
  const looked = key ?? needle
  const has = (value) => String(value).toLowerCase().includes(needle)
  // `tenant=ac` also finds a `tenant` that begins with `ac`, because the user may still be typing.
  const found = key === undefined ? has : (value, of) => has(value) || (of?.toLowerCase() === key && String(value).toLowerCase().startsWith(start))
  const isBase64 = BASE64.test(needle)
  const mayHave = isTextInBytes(looked) ? (raw) => raw.toLowerCase().includes(looked) || (isBase64 && BYTES_VALUE.test(raw)) : () => true
  return { needle, mayHave, found }
}

// A value of type `bytes` is shown and found as base64. It is field 7 of an AnyValue, which is field 2 of a KeyValue, field 1 of a list, or
// field 5 of a log record: | tag | length, a varint | tag of field 7 |
const BASE64 = /^[a-z\d+/]+={0,2}$/
const BYTES_VALUE = /[\x12\n*][\x80-\xff]{0,3}[\0-\x7f]:/ // eslint-disable-line no-control-regex

// Whether a match must have this text in its bytes, unless it is base64. Numbers, booleans and empty items of lists are encoded
// differently, and the capitals of letters outside ASCII have other bytes.
function isTextInBytes (needle) {
  // eslint-disable-next-line no-control-regex
  return /^[\x00-\x7f]*$/.test(needle) && !/^[\d.+\-e]*$/.test(needle) && !'true false infinity nan null'.includes(needle) && !/["[\]{},:]/.test(needle)
}

function spanHas (span, mayHave, found) {
  if (!mayHave(span.bytes.latin1Slice(span.from, span.to))) return false
  const { name, status, attributes, events } = readSpan(span.bytes, span.from, span.to)
  return found(name) || found(status.message) || attributes.some((attribute) => attributeHas(attribute, found)) ||
    events.some((event) => found(event.name) || event.attributes.some((attribute) => attributeHas(attribute, found)))
}

/**
 * The filter of GET /api/logs.
 * @returns {(line: import('./lines').StoredLine) => boolean} @throws BadParameter
 */
function lineFilterOf (query, nowMs = Date.now()) {
  const tests = conditionsOf(query).map(lineTest)
  const within = interval(query, nowMs)
  if (within !== null) tests.unshift(({ timeMs }) => isWithin(within, timeMs))
  if (query.get('level')) tests.unshift(lineTest(readCondition('level', `level >= ${query.get('level')}`)))
  const { needle, mayHave, found } = finderOf(query.get('q') ?? '')
  if (needle !== '') tests.push((line) => lineHas(line, mayHave, found))
  return (line) => tests.every((test) => test(line))
}

function lineHas (line, mayHave, found) {
  if (!mayHave(line.raw)) return false
  const { body, attributes, eventName } = line.read()
  return found(eventName) || [{ key: '', ...body }, ...attributes].some((attribute) => attributeHas(attribute, found))
}

function attributeHas (attribute, found) {
  const value = plain(attribute) ?? '' // an empty value is not the text "null"
  return found(attribute.key) || found(typeof value === 'object' ? JSON.stringify(value) : value, attribute.key)
}

module.exports = { Filter, Search, filterOf, lineFilterOf, withinTest }
