'use strict'

// Conditions: `where=` finds the traces and log lines for which every condition holds, and says what is wrong with one that it cannot read.

const { test } = require('tap')
const { startViewer, spansOf, traceId, spanId, START_MS } = require('./support')
const { encodeRequest } = require('../support/otlp-encode')
const { conditionOf, conditionText } = require('../../viewer/store/condition')
const { TraceStore } = require('../../viewer/store/trace-store')
const { Search, filterOf } = require('../../viewer/store/search')

const JSON_TYPE = { 'content-type': 'application/json' }
const HOSTILE = '<script>"hacked"=1</script> \\ \u202e\u0007 ' + '\ud83d\ude00'

const where = (...conditions) => conditions.map((each) => `where=${encodeURIComponent(each)}`).join('&')
const server = (rest, attributes) => ({ id: 1, name: 'GET /users/:id', kind: 2, ...rest, attributes: { 'http.request.method': 'GET', 'http.route': '/users/:id', ...attributes } })

async function sendLines (viewer, lines) {
  const keyValues = (given = {}) => Object.entries(given).map(([key, stringValue]) => ({ key, value: { stringValue } }))
  const logRecords = lines.map(({ trace, severity, text, attributes, at = 0 }) => ({
    timeUnixNano: `${BigInt(START_MS + at)}000000`, severityNumber: severity, body: { stringValue: text }, attributes: keyValues(attributes), ...(trace && { traceId: traceId(trace), spanId: spanId(1) })
  }))
  const body = { resourceLogs: [{ resource: { attributes: keyValues({ 'service.name': 'shop' }) }, scopeLogs: [{ logRecords }] }] }
  await viewer.post('/v1/logs', JSON.stringify(body), JSON_TYPE)
}

/** Five traces of three services, and four log lines. */
async function shop (t) {
  const viewer = await startViewer(t)
  await viewer.send([server({ trace: 1, ms: 12.5 }, { 'http.response.status_code': 200, 'tenant.id': 'a', items: 3 }), { trace: 1, id: 2, parent: 1, name: 'GET', kind: 3, ms: 2, attributes: { 'db.system.name': 'redis', 'tenant.id': 'b' } }])
  await viewer.send([server({ trace: 2, ms: 2500, status: 2 }, { 'http.response.status_code': 500, 'tenant.id': 'A', items: 12 })])
  await viewer.send([server({ trace: 3, ms: 100 }, { 'http.response.status_code': 404, items: '7', big: true, version: '2.10' })], { service: 'stock' })
  await viewer.send([{ trace: 4, id: 1, name: 'job', ms: 0.25, attributes: { 'tenant.id': 'a b', tags: ['red', 'green', 5], status: 'own', 'my key': 'x', empty: '', ratio: 0.5 } }], { service: 'worker' })
  await viewer.send([{ trace: 5, id: 1, name: HOSTILE, attributes: { [HOSTILE]: HOSTILE, long: 'x'.repeat(100_000) }, events: [{ name: 'exception', attributes: { 'exception.type': 'StockError' } }] }], { service: 'worker' })
  await sendLines(viewer, [
    { trace: 1, severity: 9, text: 'loaded' }, { trace: 2, severity: 17, text: 'no stock', attributes: { user: 'ann' } }, { severity: 13, text: 'Late', attributes: { user: '17' } }, { severity: 0, text: 'no level' }
  ])
  const found = async (...conditions) => (await viewer.json(`/api/traces?${where(...conditions)}`)).traces.map(({ id }) => Number(`0x${id}`)).sort()
  const lines = async (...conditions) => (await viewer.json(`/api/logs?${where(...conditions)}`)).lines.map(({ text }) => text).reverse()
  return { viewer, found, lines }
}

test('a condition compares an attribute: equal, not equal, greater, less, contains, exists', async (t) => {
  const { found } = await shop(t)
  t.same(await found('tenant.id = a'), [1], 'of any span')
  t.same(await found('tenant.id=b'), [1], 'spaces are optional')
  t.same(await found('tenant.id = "a b"'), [4])
  t.same(await found('tenant.id = a b'), [4], 'a value without quotes goes to the end')
  t.same(await found('tenant.id != a'), [2, 3, 4, 5], 'the opposite of =: also where there is no such attribute')
  t.same(await found('tenant.id', 'tenant.id != a'), [2, 4], 'every condition holds')
  t.same(await found('tenant.id ~ A'), [1, 2, 4], 'contains, in any case')
  t.same(await found('tenant.id'), [1, 2, 4])
  t.same(await found('!tenant.id'), [3, 5])
  t.same(await found('items > 3'), [2, 3], 'numbers, also as text')
  t.same(await found('items >= 3'), [1, 2, 3])
  t.same(await found('items < 12'), [1, 3], 'not as text, where 7 is greater than 12')
  t.same(await found('items <= 12.0'), [1, 2, 3])
  t.same(await found('items = 3.0'), [1], 'the same number')
  t.same(await found('items = "3.0"'), [], 'a quoted value is text')
  t.same(await found('items > many'), [], 'a number is not compared with text')
  t.same(await found('version > "2.0"'), [3], 'text with text')
  t.same(await found('ratio > 4e-1'), [4])
  t.same(await found('big = true'), [3])
  t.same(await found('tags = green'), [4], 'an item of a list')
  t.same(await found('tags = ["red","green",5]'), [4], 'the list')
  t.same(await found('tags > 4'), [4])
  t.same(await found('empty = ""'), [4])
  t.same(await found('service.name = stock'), [3], 'of the resource')
  t.same(await found('exception.type = StockError'), [5], 'of an event')
  t.same(await found('"my key" = x'), [4])
  t.same(await found('tenant.i = a'), [], 'the whole key')
  t.same(await found('nowhere != a'), [1, 2, 3, 4, 5])
})

test('a condition compares what every request has: duration, status, name, service, kind, error', async (t) => {
  const { found } = await shop(t)
  t.same(await found('duration > 100ms'), [2])
  t.same(await found('duration >= 0.1s'), [2, 3])
  t.same(await found('duration < 1 ms'), [4])
  t.same(await found('duration <= 250us'), [4])
  t.same(await found('duration <= 250000ns'), [4])
  t.same(await found('duration = 100'), [3], 'milliseconds without a unit')
  t.same(await found('status = 404'), [3])
  t.same(await found('status = 5xx'), [2])
  t.same(await found('status >= 400'), [2, 3])
  t.same(await found('status = error'), [2])
  t.same(await found('status'), [1, 2, 3])
  t.same(await found('"status" = own'), [4], 'a quoted key is an attribute')
  t.same(await found('error'), [2])
  t.same(await found('!error'), [1, 3, 4, 5])
  t.same(await found('name = GET /users/:id'), [1, 2, 3])
  t.same(await found('name ~ USERS', 'status != 200'), [2, 3])
  t.same(await found('service = worker'), [4, 5])
  t.same(await found('service != worker'), [1, 2, 3])
  t.same(await found('kind = client'), [1])
  t.same(await found('level >= warn'), [2], 'a line of the trace')
  t.same(await found('body ~ load'), [1])
})

test('log lines are filtered by the same conditions', async (t) => {
  const { lines, viewer } = await shop(t)
  t.same(await lines('level = warn'), ['Late'])
  t.same(await lines('level > info'), ['no stock', 'Late'])
  t.same(await lines('level <= info'), ['loaded', 'no level'], 'a line without a level counts as info')
  t.same(await lines('level'), ['loaded', 'no stock', 'Late'])
  t.same(await lines('error'), ['no stock'])
  t.same(await lines('!error', 'user'), ['Late'])
  t.same(await lines('user > 10'), ['Late'])
  t.same(await lines('body = Late'), ['Late'])
  t.same(await lines('body ~ LATE'), ['Late'])
  t.same(await lines('service = shop', 'user != ann'), ['loaded', 'Late', 'no level'])
  t.same(await lines('service.name != shop'), [])
  t.same(await lines('duration > 1s'), ['no stock'], 'of the request that wrote it')
  t.same(await lines('status = 200'), ['loaded'])
  t.same(await lines('name ~ users', 'kind = server'), ['loaded', 'no stock'])
  t.same((await viewer.json('/api/logs?level=warn')).lines.map(({ text }) => text), ['Late', 'no stock'], 'level= is `level >=`')
})

test('a condition that cannot be read is answered with 400, and the message names the place', async (t) => {
  const { viewer } = await shop(t)
  const problem = async (path) => {
    const response = await viewer.get(path)
    t.equal(response.status, 400, path.slice(0, 80))
    return (await response.json()).error
  }
  for (const wrong of ['=', '= a', '!', 'a =', 'a = "b', '"a', 'a b', '!a = b', '"" = a', 'a == b "', 'a => 5 "', 'duration', 'duration > fast', 'duration ~ 1', 'duration > 5 days', 'status = broken', 'status > ok',
    'error = yes', 'kind = horse', 'kind > server', 'level = loud', 'level ~ warn', 'x'.repeat(501), 'a.'.repeat(5000), `a ~ ${'x'.repeat(251)}`]) {
    for (const path of ['/api/traces', '/api/logs', '/api/export', '/api/traces/overview', '/api/events']) t.match(await problem(`${path}?${where(wrong)}`), /^where: /, wrong.slice(0, 20))
  }
  t.match(await problem(`/api/traces?${where(...Array.from({ length: 11 }, () => 'a'))}`), 'where: can be given 10 times at most')
  t.match(await problem('/api/traces?status=broken'), /^status: /)
  t.match(await problem('/api/logs?level=loud'), /^level: /)
})

test('hostile keys and values are found as text, and written so that they are read the same again', async (t) => {
  const { found } = await shop(t)
  const texts = ['a', 'a b', ' a', 'a ', '', '"', '\\', '\\"', '"a"', '= a', '!= 5', '7', HOSTILE, 'x\ny', '\ud800'.toWellFormed(), "o'brien", '名前', '(a+)+$']
  for (const key of [...texts.filter((each) => each !== ''), 'status', 'error', '!a', 'a=b', 'a~b']) {
    for (const value of texts) {
      for (const op of ['=', '>', '~']) {
        const written = conditionText({ key, attribute: true, op, value, quoted: true })
        t.match(conditionOf(written), { key, attribute: true, op, value, negated: false }, written)
      }
    }
    t.match(conditionOf(conditionText({ key, attribute: true, op: '', value: '' })), { key, attribute: true, op: '' })
  }
  t.same(await found(conditionText({ key: HOSTILE, attribute: true, op: '=', value: HOSTILE })), [5])
  t.same(await found(`long ~ ${'x'.repeat(250)}`), [5])
  t.same(await found('long ~ (x+x+)+y'), [], 'text, not a pattern')
  for (const text of ['!error', 'a != b', 'duration > 100ms', 'status = 4xx', 'level >= warn', 'a ~ b c', '"error" = x', 'a = "5"']) t.equal(conditionText(conditionOf(text)), text)
})

test('live events and the export are filtered by the same conditions', async (t) => {
  const { viewer } = await shop(t)
  const exported = (await (await viewer.get(`/api/export?${where('status >= 400')}`)).text()).trim().split('\n')
  t.equal(exported.length, 2)
  const stop = new AbortController()
  const response = await viewer.get(`/api/events?${where('tenant.id = new')}`, { signal: stop.signal })
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  const until = async (pattern) => {
    let text = ''
    while (!pattern.test(text)) text += (await reader.read()).value
    return text
  }
  await until(/event: hello/)
  await viewer.send([server({ trace: 7 }, { 'tenant.id': 'old' }), server({ trace: 8 }, { 'tenant.id': 'new' })])
  const text = await until(/event: traces[^]*\n\n/)
  t.match(text, traceId(8))
  t.notMatch(text, traceId(7))
  stop.abort()
})

test('a search lets other work run, even within a large trace, and survives evictions meanwhile', async (t) => {
  const store = new TraceStore({ maxBytes: 8 * 1024 * 1024 })
  const large = (trace) => encodeRequest(spansOf(Array.from({ length: 4000 }, (_, i) => ({ trace, id: i + 1, parent: i === 0 ? undefined : 1, attributes: { key: i } }))))
  for (let trace = 1; trace <= 3; trace++) store.receive(large(trace))
  const filter = filterOf(new URLSearchParams(where('key = nowhere', 'key != 5')))
  let steps = 0
  for (const walk = filter.steps(store.at(1)); !walk.next().done;) steps++
  t.ok(steps >= 4000, 'it stops between the spans of one trace')
  t.same(filter.matchesWithin(store.at(1), 3000), { matches: undefined, read: 3000 }, 'or it gives up, if it may not read as many')
  t.match(filter.matchesWithin(store.at(1), 10_000), { matches: false })
  const ofMany = Array.from({ length: 200 }, (_, i) => spansOf([{ trace: 9, id: i + 1 }], `shop-${i}`).resourceSpans[0])
  store.receive(encodeRequest({ resourceSpans: ofMany }))
  let origins = 0
  for (const walk = filterOf(new URLSearchParams(where('service = nobody'))).steps(store.at(4)); !walk.next().done;) origins++
  t.equal(origins, 200, 'and between its origins')
  for (let trace = 10; trace < 2100; trace++) store.receive(encodeRequest(spansOf([{ trace, id: 1, attributes: { key: 'x'.repeat(1000) } }])))
  const search = new Search(store, filterOf(new URLSearchParams(where('key'))), { sliceMs: 0 })
  let turns = 0
  const found = []
  for await (const trace of search) {
    found.push(trace.order)
    if (++turns % 100 === 0) for (let more = 0; more < 100; more++) store.receive(encodeRequest(spansOf([{ trace: 5000 + turns * 100 + more, id: 1, attributes: { key: 'x'.repeat(20_000) } }])))
  }
  t.ok(found.length > 100)
  t.same(found, found.toSorted((a, b) => b - a), 'newest first, each once')
  t.equal(new Set(found).size, found.length)
})

test('no text of more than 250 characters is searched, because a search for one compares it at every place', async (t) => {
  const key = 'a.'.repeat(150)
  const { viewer, found, lines } = await shop(t)
  await viewer.send([{ trace: 6, id: 1, attributes: { [key]: 'x', other: 'a.'.repeat(1000) } }])
  await sendLines(viewer, [{ text: 'long', attributes: { [key]: 'x' } }])
  let longest = 0
  for (const { prototype } of [String, Buffer]) {
    const { includes } = prototype
    prototype.includes = function (searched, ...rest) {
      longest = Math.max(longest, searched.length ?? 0)
      return includes.call(this, searched, ...rest)
    }
    t.teardown(() => { prototype.includes = includes })
  }
  t.same(await found(key), [6])
  t.same(await found(`${key} = x`), [6])
  t.same(await found(`${key}a`), [])
  t.same(await lines(key), ['long'])
  t.same(await found(`other ~ ${'a.'.repeat(125)}`), [6])
  t.equal((await viewer.get(`/api/traces?q=${'a.'.repeat(125)}`)).status, 200)
  t.equal(longest, 250)
})

test('of a list in a list in a list, only the items of the outermost list are compared', (t) => {
  const store = new TraceStore()
  let value = ['deep']
  for (let i = 0; i < 50; i++) value = [value, i]
  store.receive(encodeRequest(spansOf([{ id: 1, attributes: { value } }])))
  const made = t.capture(JSON, 'stringify', JSON.stringify)
  const matches = (condition) => filterOf(new URLSearchParams(where(condition))).matchesWithin(store.at(1), 10).matches
  t.equal(matches('value = 49'), true)
  t.equal(matches('value = 48'), false)
  const times = made().length
  t.ok(times < 10, `${times}`)
  t.equal(matches('value ~ deep'), true)
  t.end()
})
