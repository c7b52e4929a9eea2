'use strict'

// Random filters over random traces. What the viewer finds is compared with a plain reading of viewer/api.md over the same spans and lines.

const { test } = require('tap')
const { Search, filterOf } = require('../../viewer/store/search')
const { TraceStore } = require('../../viewer/store/trace-store')
const { logsFromJson } = require('../../viewer/otlp/json-request')
const { encodeRequest } = require('../support/otlp-encode')
const { randomFrom } = require('../support/random')
const { spansOf, traceId, START_MS } = require('./support')

const LONG_KEY = 'k'.repeat(130) // its length is in two bytes
const KEYS = ['tenant.id', 'items', 'flag', 'tags', LONG_KEY, 'my key']
const VALUES = ['a', 'A', 'a b', '', null, 3, 12, -7, 0.5, '3', '3.0', '2.10', true, false, 'Ärger', ['red', 5, null], [], 'nullable', 'x=y']
const NAMES = ['GET /users/:id', 'job', 'SELECT items']
const KINDS = ['', 'internal', 'server', 'client', 'producer', 'consumer']
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal']
const UNITS = [['', 1], ['ms', 1], ['us', 1e-3], ['s', 1000], ['m', 60_000]]
const TEXTS = ['null', 'nul', 'a', 'A B', '3', 'true', 'red', 'tags', 'ärger', 'shop', 'stock', 'light-trace', 'tenant.id=a', 'items=1', 'flag=n', 'flag=t', 'x=y', 'oops', 'thrown', 'late', 'GET', traceId(3), '"red"', '[']

function tracesOf (any, chance) {
  const attributes = () => Object.fromEntries(KEYS.filter(() => chance(4)).map((key) => [key, any(VALUES)]))
  return Array.from({ length: 60 }, (_, n) => {
    const code = any([0, 200, 204, 404, 409, 500, 503])
    const spans = Array.from({ length: 1 + (n % 3) }, (_, i) => ({
      trace: n + 1,
      id: i + 1,
      parent: i === 0 ? undefined : 1,
      name: any(NAMES),
      kind: i === 0 ? any([1, 2, 5]) : any([1, 2, 3, 4, 5]),
      at: any([0, 1, 2, 3]) * 1000 + n,
      ms: any([0.25, 1, 99.5, 100, 2500, 60_000]),
      status: chance(4) ? 2 : undefined,
      message: any(['', 'oops']),
      attributes: { ...attributes(), ...i === 0 && code > 0 && { 'http.response.status_code': code } },
      events: chance(4) ? [{ name: 'thrown', attributes: attributes() }] : []
    }))
    const lines = chance(3) ? [{ severity: any([0, 1, 5, 9, 13, 17, 21]), body: any(['late', 'Oops', '', '3', null]), attributes: attributes() }] : []
    return { n: n + 1, service: any(['shop', 'stock']), code, spans, lines }
  })
}

function storeOf (traces) {
  const store = new TraceStore({ now: () => START_MS })
  const anyValue = (value) => value === null ? {} : { stringValue: value }
  for (const { n, service, spans, lines } of traces) {
    store.receive(encodeRequest(spansOf(spans, service)))
    const keyValues = (given) => Object.entries(given).filter(([, value]) => typeof value === 'string' || value === null).map(([key, value]) => ({ key, value: anyValue(value) }))
    const logRecords = lines.map(({ severity, body, attributes }) => ({ traceId: traceId(n), severityNumber: severity, body: anyValue(body), attributes: keyValues(attributes) }))
    if (lines.length > 0) store.receiveLines(logsFromJson({ resourceLogs: [{ resource: { attributes: keyValues({ 'service.name': service }) }, scopeLogs: [{ logRecords }] }] }))
  }
  return store
}

/** A condition as text, and as a function that a trace must pass. */
function conditionOf (any, chance) {
  const op = any(['=', '!=', '>', '>=', '<', '<=', '~'])
  const compare = { '>': (a, b) => a > b, '>=': (a, b) => a >= b, '<': (a, b) => a < b, '<=': (a, b) => a <= b, '=': (a, b) => a === b, '!=': (a, b) => a === b }[op]
  const key = any(KEYS)
  const unless = (passes) => op === '!=' ? (trace) => !passes(trace) : passes
  switch (any(['attribute', 'attribute', 'attribute', 'exists', 'duration', 'status', 'class', 'error', 'text', 'kind', 'level'])) {
    case 'exists': return chance(2) ? [`"${key}"`, (trace) => valuesOf(trace, key).length > 0] : [`!"${key}"`, (trace) => valuesOf(trace, key).length === 0]
    case 'duration': {
      const [[unit, ms], number] = [any(UNITS), any([0, 0.25, 1, 100, 2.5])]
      return [`duration ${compare === undefined ? '<' : op} ${number}${unit}`, unless(({ spans }) => (compare ?? ((a, b) => a < b))(spans[0].ms, number * ms))]
    }
    case 'status': {
      const number = any([200, 404, 500])
      return compare === undefined ? ['status', ({ code }) => code > 0] : [`status ${op} ${number}`, unless(({ code }) => code > 0 && compare(code, number))]
    }
    case 'class': return any([['status = 4xx', ({ code }) => code >= 400 && code < 500], ['status != 2xx', ({ code }) => code < 200 || code > 299], ['status = error', hasFailed], ['status = ok', (trace) => !hasFailed(trace)]])
    case 'error': return chance(2) ? ['error', hasFailed] : ['!error', (trace) => !hasFailed(trace)]
    case 'text': {
      const [field, of] = any([['name', ({ spans }) => spans.map(({ name }) => name)], ['service', ({ service }) => [service]], ['body', ({ lines }) => lines.map(({ body }) => body)]])
      return holding(field, any([...NAMES, 'shop', 'o', 'late', 'STOCK', '']), op, of)
    }
    case 'kind': return any([1, 2, 3, 4, 5].map((at) => [`kind ${op === '!=' ? op : '='} ${KINDS[at]}`, unless(({ spans }) => spans.some(({ kind }) => kind === at))]))
    case 'level': {
      const at = any([0, 1, 2, 3, 4, 5])
      return compare === undefined ? ['level', ({ lines }) => lines.some(({ severity }) => severity > 0)] : [`level ${op} ${LEVELS[at]}`, unless(({ lines }) => lines.some(({ severity }) => compare(severity === 0 ? 2 : (severity - 1) / 4, at)))]
    }
  }
  return holding(`"${key}"`, any(VALUES.filter((value) => typeof value !== 'object')), op, (trace) => valuesOf(trace, key))
}

function holding (key, value, op, of) {
  const number = typeof value === 'number' ? value : undefined
  const one = (sent) => {
    const given = sent ?? ''
    const text = String(given)
    if (op === '=' || op === '!=') return text === String(value) || (number !== undefined && given === number)
    if (op === '~') return text.toLowerCase().includes(String(value).toLowerCase())
    const isNumeric = typeof given === 'number' || (typeof given === 'string' && /^-?\d+(\.\d+)?$/.test(given))
    if (number === undefined ? typeof given !== 'string' : !isNumeric) return false
    const [a, b] = number === undefined ? [given, String(value)] : [Number(given), number]
    return op === '>' ? a > b : op === '>=' ? a >= b : op === '<' ? a < b : a <= b
  }
  const some = (trace) => of(trace).some((given) => Array.isArray(given) ? [JSON.stringify(given), ...given].some(one) : one(given))
  return [`${key} ${op} ${typeof value === 'string' ? `"${value}"` : value}`, op === '!=' ? (trace) => !some(trace) : some]
}

const attributesOf = ({ service, spans }) => [{ 'service.name': service }, ...spans.flatMap(({ attributes, events }) => [attributes, ...events.map((event) => event.attributes)])]
const valuesOf = (trace, key) => attributesOf(trace).filter((each) => Object.hasOwn(each, key)).map((each) => each[key])
const hasFailed = ({ spans }) => spans.some(({ status, kind }, i) => status === 2 && (i === 0 || kind === 2 || kind === 5))

function hasText (trace, q) {
  const needle = q.toLowerCase()
  const { n, spans, lines } = trace
  const ofLines = lines.map(({ attributes }) => Object.fromEntries(Object.entries(attributes).filter(([, value]) => typeof value === 'string' || value === null)))
  const pairs = [...attributesOf(trace), ...ofLines].flatMap(Object.entries)
  const ofSpans = spans.flatMap(({ name, status, message, events }) => [name, status === 2 ? message : '', ...events.map((event) => event.name)])
  const texts = ['light-trace', ...ofSpans, ...lines.map(({ body }) => body ?? ''), ...pairs.flatMap(([key, value]) => [key, textOf(value)])]
  const [key, start] = needle.split('=')
  return texts.some((text) => text.toLowerCase().includes(needle)) || (needle.length === 32 && traceId(n) === needle) ||
    (start !== undefined && pairs.some(([of, value]) => of === key && textOf(value).toLowerCase().startsWith(start)))
}

const textOf = (value) => value === null ? '' : Array.isArray(value) ? JSON.stringify(value) : String(value)

test('a search finds the traces that a plain reading of its conditions finds, newest first', async (t) => {
  for (let seed = 1; seed <= 3; seed++) {
    const next = randomFrom(seed)
    const any = (list) => list[Math.floor(next() * list.length)]
    const chance = (oneIn) => next() * oneIn < 1
    const traces = tracesOf(any, chance)
    const store = storeOf(traces)
    for (let round = 0; round < 80; round++) {
      const conditions = Array.from({ length: Math.floor(next() * 3) }, () => conditionOf(any, chance))
      const query = new URLSearchParams(conditions.map(([text]) => ['where', text]))
      const tests = conditions.map(([, passes]) => passes)
      if (chance(2)) {
        const q = any(TEXTS)
        query.set('q', q)
        tests.push((trace) => hasText(trace, q))
      }
      if (chance(3)) {
        const [from, to] = [any([0, 500, 1001]), any([1030, 2000, 4000])]
        query.set('from', START_MS + from)
        query.set('to', START_MS + to)
        tests.push(({ spans }) => spans[0].at >= from && spans[0].at <= to)
      }
      const before = chance(4) ? any([5, 30]) : Infinity
      const found = []
      for await (const { order } of new Search(store, filterOf(query), { before })) found.push(order)
      t.same(found, traces.filter((trace) => trace.n < before && tests.every((passes) => passes(trace))).map(({ n }) => n).reverse(), `seed ${seed}: ${decodeURIComponent(query)}`)
    }
  }
})
