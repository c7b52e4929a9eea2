'use strict'

// The filters of GET /api/traces and GET /api/logs. Most compare a field of the summary, which is fast. `q` and `attr` read the
// spans' bytes.

const { readSpan, readResource, readScope } = require('../otlp/span-detail')
const { plain } = require('../otlp/attributes')
const { LEVELS, leastSeverity } = require('../otlp/log-record')
const { BadParameter } = require('./parameters')
const { summaryOf, routeOf } = require('./summary')

const TEXT_MAX = 500
const ATTRIBUTES_MAX = 10

/**
 * @param {URLSearchParams} query
 * @returns {{ matches (trace): boolean, reads: boolean }} `reads`: it reads spans, which is slow: search in slices
 * @throws BadParameter
 */
function filterOf (query) {
  const tests = []
  const given = (name) => query.get(name) || undefined
  const add = (name, make) => { if (given(name) !== undefined) tests.push(make(given(name), name)) }
  add('status', statusTest)
  add('route', (route) => ({ spans }) => spans.some((span) => routeOf(span) === route || (span.kind === 2 && routeOf(span) === null && span.name === route)))
  add('service', (service) => ({ origins }) => origins.some((origin) => origin.service === service))
  add('minMs', (value, name) => durationTest(value, name, (ms, bound) => ms >= bound))
  add('maxMs', (value, name) => durationTest(value, name, (ms, bound) => ms <= bound))
  add('unrouted', () => (trace) => summaryOf(trace).unrouted)
  add('exception', (key) => ({ faults }) => faults !== null && faults.some((fault) => fault.key === key))
  const fast = tests.length
  const attributes = query.getAll('attr').filter((each) => each !== '')
  if (attributes.length > ATTRIBUTES_MAX) throw new BadParameter(`attr: can be given ${ATTRIBUTES_MAX} times at most`)
  for (const each of attributes) tests.push(attributeTest(each))
  add('q', textTest)
  return { matches: (trace) => tests.every((test) => test(trace)), reads: tests.length > fast }
}

function statusTest (status) {
  if (status === 'error' || status === 'ok') return (trace) => trace.failed === (status === 'error')
  const match = /^([1-5])(\d\d|xx)$/i.exec(status)
  if (match === null) throw new BadParameter('status: must be error, ok, a number such as 404 or a class such as 4xx')
  const isClass = match[2].toLowerCase() === 'xx'
  return (trace) => {
    const code = summaryOf(trace).status
    return code !== null && (isClass ? Math.floor(code / 100) === Number(match[1]) : code === Number(status))
  }
}

function durationTest (value, name, compare) {
  const bound = Number(value)
  if (!(bound >= 0)) throw new BadParameter(`${name}: must be a number of milliseconds`)
  return (trace) => compare(summaryOf(trace).durationMs, bound)
}

function attributeTest (given) {
  if (given.length > TEXT_MAX) throw new BadParameter(`attr: must have at most ${TEXT_MAX} characters`)
  const colon = given.indexOf(':')
  const key = colon === -1 ? given : given.slice(0, colon)
  const value = colon === -1 ? undefined : given.slice(colon + 1)
  const needle = Buffer.from(key)
  const holds = (attribute) => {
    if (attribute.key !== key) return false
    if (value === undefined) return true
    const found = plain(attribute)
    return (typeof found === 'object' && found !== null ? JSON.stringify(found) : String(found)) === value
  }
  return ({ origins, spans }) => origins.some(({ resource }) => resource.includes(needle) && readResource(resource).some(holds)) ||
    spans.some((span) => includes(span, needle) && readSpan(span.bytes, span.from, span.to).attributes.some(holds))
}

function includes ({ bytes, from, to }, needle) {
  return bytes.subarray(from, to).includes(needle)
}

function textTest (text) {
  if (text.length > TEXT_MAX) throw new BadParameter(`q: must have at most ${TEXT_MAX} characters`)
  const needle = text.toLowerCase()
  const isId = /^[0-9a-f]{8,32}$/.test(needle)
  const [, key, start] = /^([^\s=]+)=(.*)$/.exec(needle) ?? []
  const looked = key ?? needle
  const raw = isTextInBytes(looked) ? looked : null
  const has = (value) => String(value).toLowerCase().includes(needle)
  // `tenant=ac` also finds a `tenant` that begins with `ac`, because the user may still be typing.
  const found = key === undefined ? has : (value, of) => has(value) || (of?.toLowerCase() === key && String(value).toLowerCase().startsWith(start))
  return (trace) => (isId && trace.id.startsWith(needle)) ||
    trace.origins.some(({ resource, scope }) => readResource(resource).some((attribute) => attributeHas(attribute, found)) || found(readScope(scope).name)) ||
    trace.lines.some((line) => lineHas(line, raw, found)) ||
    trace.spans.some((span) => (isId && span.id.startsWith(needle)) || found(span.name) || spanHas(span, raw, found))
}

// Whether a match must have this text in its raw bytes, which are cheap to search. Numbers and booleans are encoded differently, and the
// capitals of letters outside ASCII have other bytes.
function isTextInBytes (needle) {
  // eslint-disable-next-line no-control-regex
  return /^[\x00-\x7f]*$/.test(needle) && !/^[\d.+\-e]*$/.test(needle) && !'true false infinity nan'.includes(needle) && !/["[\]{},:]/.test(needle)
}

function spanHas (span, raw, found) {
  if (raw !== null && !span.bytes.latin1Slice(span.from, span.to).toLowerCase().includes(raw)) return false
  const { name, status, attributes, events } = readSpan(span.bytes, span.from, span.to)
  return found(name) || found(status.message) || attributes.some((attribute) => attributeHas(attribute, found)) ||
    events.some((event) => found(event.name) || event.attributes.some((attribute) => attributeHas(attribute, found)))
}

/**
 * The filter of GET /api/logs. A line without a level counts as info.
 * @returns {(line: import('./lines').StoredLine) => boolean} @throws BadParameter
 */
function lineFilterOf (query) {
  const level = query.get('level') || LEVELS[0]
  const least = leastSeverity(level)
  if (least === undefined) throw new BadParameter(`level: must be one of ${LEVELS.join(', ')}`)
  const needle = (query.get('q') ?? '').toLowerCase()
  if (needle.length > TEXT_MAX) throw new BadParameter(`q: must have at most ${TEXT_MAX} characters`)
  const raw = isTextInBytes(needle) ? needle : null
  const found = (value) => String(value).toLowerCase().includes(needle)
  return (line) => (line.severity || leastSeverity('info')) >= least && (needle === '' || lineHas(line, raw, found))
}

function lineHas (line, raw, found) {
  if (raw !== null && !line.raw.toLowerCase().includes(raw)) return false
  const { body, attributes, eventName } = line.read()
  return found(eventName) || [{ key: '', ...body }, ...attributes].some((attribute) => attributeHas(attribute, found))
}

function attributeHas (attribute, found) {
  const value = plain(attribute)
  return found(attribute.key) || found(typeof value === 'object' && value !== null ? JSON.stringify(value) : value, attribute.key)
}

module.exports = { filterOf, lineFilterOf }
