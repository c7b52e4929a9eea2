'use strict'

// Incoming data is untrusted. It leads to an error or a bounded view, and the viewer keeps running.

const { gzipSync } = require('node:zlib')
const net = require('node:net')
const { test } = require('tap')
const { startViewer, spansOf, traceId, spanId } = require('./support')
const { encodeRequest } = require('../support/otlp-encode')
const { safeText } = require('../../viewer/views/safe-text')
const { TraceStore } = require('../../viewer/store/trace-store')
const { filterOf } = require('../../viewer/store/search')
const { RouteStatistics } = require('../../viewer/statistics/routes')
const { Exceptions } = require('../../viewer/statistics/exceptions')
const { Malformed } = require('../../viewer/otlp/proto-reader')
const { bodyText } = require('../../viewer/otlp/json-body')
const { requestFromJson } = require('../../viewer/otlp/json-request')
const { rowsOf } = require('../../viewer/views/rows')
const { textOf } = require('../../viewer/views/text')
const { perfettoOf } = require('../../viewer/views/perfetto')
const { otlpJson } = require('../../viewer/views/otlp-json')
const { panelOf } = require('../../viewer/views/span-panel')
const { Message } = require('../../viewer/otlp/proto-writer')

const PROTOBUF = { 'content-type': 'application/x-protobuf' }
const JSON_TYPE = { 'content-type': 'application/json' }
const MIB = 1024 * 1024

const good = encodeRequest(spansOf([{ name: 'good', attributes: { a: 'b', list: ['x', 1, true] }, events: [{ name: 'e' }], links: [{ trace: 3, span: 3 }] }]))

// Checks that the viewer still accepts and answers requests.
async function stillAnswers (t, viewer, message) {
  t.equal((await viewer.post('/v1/traces', good, PROTOBUF)).status, 200, message)
  t.equal((await viewer.get('/api/traces')).status, 200, message)
}

test('every cut and every changed byte of a body is refused or read, and what was kept can be shown', async (t) => {
  const store = new TraceStore()
  const routes = new RouteStatistics(store)
  const exceptions = new Exceptions(store)
  const outcomes = { taken: 0, refused: 0 }
  const receive = (body) => {
    try {
      store.receive(body)
      outcomes.taken++
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      outcomes.refused++
    }
  }
  for (let at = 0; at < good.length; at++) {
    receive(good.subarray(0, at))
    for (const value of [0, 0x7f, 0xff, good[at] ^ 1, good[at] + 1]) {
      const changed = Buffer.from(good)
      changed[at] = value
      receive(changed)
    }
  }
  t.ok(outcomes.taken > 100 && outcomes.refused > 100)
  const filter = filterOf(new URLSearchParams('q=nowhere&where=list'))
  for (const trace of store.newestFirst()) {
    filter.matchesWithin(trace, Infinity)
    rowsOf(trace)
    textOf(trace, { attributes: true })
    perfettoOf(trace)
    requestFromJson(JSON.parse(JSON.stringify(otlpJson(trace.spans))))
    for (const span of trace.spans) panelOf(trace, span, { isHeld: () => true })
  }
  t.type(routes.list().routes.length + exceptions.list().exceptions.length, 'number')
})

test('a malformed body is an error in the type that came', async (t) => {
  const viewer = await startViewer(t)
  const binary = await viewer.post('/v1/traces', Buffer.from([0xff, 0xff, 0xff]), PROTOBUF)
  t.match([binary.status, binary.headers.get('content-type')], [400, 'application/x-protobuf'])
  t.match(Buffer.from(await binary.arrayBuffer()).toString(), /number does not end/, 'a google.rpc.Status')
  for (const body of ['', '[', '[]', 'null', '{"resourceSpans":{}}', '{"resourceSpans":[3]}', '{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":5}]}]}]}',
    '{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"soon"}]}]}]}', '{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"SPAN_KIND_NONE"}]}]}]}']) {
    const response = await viewer.post('/v1/traces', body, JSON_TYPE)
    t.match([response.status, response.headers.get('content-type')], [400, 'application/json'], body)
    t.type((await response.json()).message, 'string')
  }
  t.equal((await viewer.post('/v1/traces', good, { 'content-type': 'text/plain' })).status, 415)
  t.equal((await viewer.post('/v1/traces', good, { ...PROTOBUF, 'content-encoding': 'br' })).status, 415)
  t.equal((await viewer.post('/v1/traces', 'no gzip', { ...PROTOBUF, 'content-encoding': 'gzip' })).status, 400)
  t.match((await viewer.json('/api/stats')).refused, { requests: 13, reasons: { malformed: 11, media_type: 1, encoding: 1 } })
})

test('the spans and log lines before the malformed part of a protobuf body are stored, saved and counted', async (t) => {
  const viewer = await startViewer(t)
  const saved = []
  viewer.viewer.receiver.save = (spans, lines) => saved.push(...spans.map(({ id }) => id), ...lines.map(({ traceId }) => traceId))
  const broken = Buffer.from([0x0a, 50])
  const bodyOf = (good) => message([[1, message([[2, message([[2, message(good)], [2, broken]])]])]])
  t.equal((await viewer.post('/v1/traces', bodyOf([[1, Buffer.alloc(16, 7)], [2, Buffer.alloc(8, 7)]]), PROTOBUF)).status, 400)
  t.equal((await viewer.post('/v1/logs', bodyOf([[9, Buffer.alloc(16, 7)]]), PROTOBUF)).status, 400)
  t.same(saved, ['07'.repeat(8), '07'.repeat(16)])
  t.match(await viewer.json('/api/stats'), { spans: 1, received: { requests: 0, spans: 1, logs: 0 }, lines: { held: 1, received: 1 }, refused: { reasons: { malformed: 2 } } })
})

function message (fields) {
  const written = new Message()
  for (const [number, bytes] of fields) written.bytes(number, bytes)
  return written.finish()
}

test('a body above 64 MiB is refused, before and after decompressing', async (t) => {
  const viewer = await startViewer(t)
  const claimed = await new Promise((resolve) => {
    const socket = net.connect(viewer.port, '127.0.0.1', () => socket.write(`POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${64 * MIB + 1}\r\n\r\n{`))
    socket.once('data', (data) => {
      resolve(data.toString())
      socket.destroy()
    })
  })
  t.match(claimed, /^HTTP\/1\.1 413 /, 'by what it says, without reading it')
  const bomb = gzipSync(Buffer.alloc(200 * MIB), { level: 9 })
  t.ok(bomb.length < MIB)
  const before = process.memoryUsage().rss
  const answers = await Promise.all(Array.from({ length: 8 }, () => viewer.post('/v1/traces', bomb, { ...PROTOBUF, 'content-encoding': 'gzip' })))
  t.same(answers.map(({ status }) => status), Array(8).fill(413))
  t.ok(process.memoryUsage().rss - before < 400 * MIB, 'and not all of them at once')
  t.equal((await viewer.json('/api/stats')).refused.reasons.too_large, 9)
  await stillAnswers(t, viewer, 'goes on')
})

test('JSON and protobuf of depth 10,000 are taken, and their values are shown up to a depth', async (t) => {
  const viewer = await startViewer(t)
  const deep = '{"arrayValue":{"values":['.repeat(10_000) + '{"stringValue":"x"}' + ']}}'.repeat(10_000)
  const body = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"${traceId(1)}","spanId":"${spanId(1)}","name":"deep","attributes":[{"key":"deep","value":${deep}}]}]}]}]}`
  t.equal((await viewer.post('/v1/traces', body, JSON_TYPE)).status, 200)
  const { attributes } = await viewer.json(`/api/traces/${traceId(1)}/spans/${spanId(1)}`)
  t.match(JSON.stringify(attributes), /nested too deep/)
  let value = new Message()
  value.text(1, 'x')
  for (let i = 0; i < 3000; i++) {
    const list = new Message()
    list.message(1, value)
    value = new Message()
    value.message(5, list)
  }
  const keyValue = new Message()
  keyValue.text(1, 'deep')
  keyValue.message(2, value)
  t.equal((await viewer.post('/v1/traces', requestWith(2, (span) => span.message(9, keyValue)), PROTOBUF)).status, 200)
  t.match(JSON.stringify(await viewer.json(`/api/traces/${traceId(2)}/spans/${spanId(1)}`)), /nested too deep/)
})

function requestWith (trace, more) {
  const span = new Message()
  span.bytes(1, Buffer.from(traceId(trace), 'hex'))
  span.bytes(2, Buffer.from(spanId(1), 'hex'))
  more(span)
  return [2, 2, 1].reduce((inner, field) => {
    const outer = new Message()
    outer.message(field, inner)
    return outer
  }, span).finish()
}

test('spans without valid ids are counted, and the sender is told', async (t) => {
  const viewer = await startViewer(t)
  const spans = [{ trace: 0 }, { id: 0 }, { name: 'good', id: 7 }]
  const response = await viewer.post('/v1/traces', JSON.stringify({
    resourceSpans: [{ scopeSpans: [{ spans: [...spans.map(({ trace = 1, id = 1, name = '' }) => ({ traceId: traceId(trace), spanId: spanId(id), name })), { traceId: 'abcd', spanId: spanId(1) }] }] }]
  }), JSON_TYPE)
  t.match(await response.json(), { partialSuccess: { rejectedSpans: '3' } })
  t.match((await viewer.json('/api/stats')).dropped, { spans: 3, reasons: { ids: 3 } })
})

test('scripts, control characters and marks of direction stay text', async (t) => {
  const viewer = await startViewer(t)
  const name = '<script>alert(1)</script>\u001b[31m\u202eevil\u0000\ud800'
  await viewer.post('/v1/traces', JSON.stringify({
    resourceSpans: [{
      resource: { attributes: [{ key: 'service.name', value: { stringValue: name } }] },
      scopeSpans: [{ scope: { name }, spans: [{ traceId: traceId(1), spanId: spanId(1), name, attributes: [{ key: '__proto__', value: { kvlistValue: { values: [{ key: '__proto__', value: { stringValue: name } }] } } }] }] }]
    }]
  }), JSON_TYPE)
  const list = await viewer.get('/api/traces')
  t.match(list.headers.get('content-type'), /^application\/json/)
  const expected = name.replace('\ud800', '\ufffd')
  t.match((await list.json()).traces[0], { name: expected, service: expected })
  const text = await (await viewer.get(`/api/traces/${traceId(1)}/text?attributes`)).text()
  // eslint-disable-next-line no-control-regex
  t.notMatch(text, /[\u0000-\u0009\u000b-\u001f\u202e]/, 'a terminal is not driven by it')
  t.match(text, /\\u001b\[31m\\u202eevil\\u0000/)
  t.equal(safeText('a\nb\u2028c\u200fd'), 'a\\u000ab\\u2028c\\u200fd')
})

test('a value of 10 MB is stored, and sent only on request', async (t) => {
  const viewer = await startViewer(t)
  t.equal((await viewer.send([{ name: 'x'.repeat(5 * MIB), attributes: { large: 'é'.repeat(5 * MIB) } }])).status, 200)
  for (const path of ['/api/traces', `/api/traces/${traceId(1)}/rows`, `/api/traces/${traceId(1)}/text?attributes`]) {
    t.ok((await (await viewer.get(path)).text()).length < 10_000, path)
  }
  const path = `/api/traces/${traceId(1)}/spans/${spanId(1)}`
  t.ok((await (await viewer.get(path)).text()).length < 50_000)
  t.ok((await (await viewer.get(`${path}?full=1`)).text()).length > 10 * MIB)
})

test('a type and a message of megabytes are cut where traces are listed', async (t) => {
  const viewer = await startViewer(t)
  const long = 'x'.repeat(MIB)
  await viewer.send([{ status: 2, events: [{ name: 'exception', attributes: { 'exception.type': long, 'exception.message': long } }] }])
  await viewer.send([{ trace: 2, status: 2, message: long, attributes: { 'error.type': long } }])
  for (const path of ['/api/traces', '/api/exceptions']) t.ok((await (await viewer.get(path)).text()).length < 5000, path)
})

test('OTLP JSON has no characters that drive a terminal, and the same values', async (t) => {
  const viewer = await startViewer(t)
  const name = 'c1 \u009b31m \u0090 del \u007f turn \u202e whole \ud83d\ude00'
  await viewer.send([{ name }])
  for (const path of [`/api/traces/${traceId(1)}`, '/api/export']) {
    const text = await (await viewer.get(path)).text()
    t.notMatch(text, /[\u007f-\u009f\u202e]/, path)
    t.equal(JSON.parse(text).resourceSpans[0].scopeSpans[0].spans[0].name, name, path)
  }
})

test('200,000 spans that overlap are drawn for Perfetto', (t) => {
  const store = new TraceStore()
  store.receive(encodeRequest(spansOf([{}])))
  const { spans: [span], ...trace } = store.get(traceId(1))
  const spans = Array.from({ length: 200_000 }, (_, i) => Object.assign(Object.create(span), { id: `${i}`, startMs: span.startMs + i / 1000, durationMs: 1000 }))
  const { traceEvents } = perfettoOf({ ...trace, spans })
  t.equal(new Set(traceEvents.map(({ tid }) => tid)).size, 200_001, 'each in a lane of its own')
  t.end()
})

test('clocks that are hours off neither hide a trace nor tear it apart', async (t) => {
  const viewer = await startViewer(t)
  const hours = 3 * 3_600_000
  await viewer.send([{ id: 1, name: 'GET', kind: 2, ms: 100 }, { id: 2, parent: 1, name: 'call', kind: 3, at: 20, ms: 60 }])
  await viewer.send([{ id: 3, parent: 2, name: 'answer', kind: 2, at: -hours, ms: 40 }, { id: 4, parent: 3, name: 'query', at: -hours + 10, ms: 20 }], { service: 'stock' })
  const { rows, durationMs, trace } = await viewer.json(`/api/traces/${traceId(1)}/rows`)
  t.same(rows.map(({ name, start, shift }) => [name, start, shift]), [
    ['GET', 0, undefined], ['call', 20, undefined], ['answer', 30, hours + 30], ['query', 40, hours + 30]
  ], 'an answer lies in its call, and what it did moves with it')
  t.same([durationMs, trace.durationMs], [100, 100])
  await viewer.send([{ trace: 2, id: 1, at: -1000 * hours, name: 'of the past' }])
  t.equal((await viewer.json('/api/traces')).traces[0].name, 'of the past', 'newest is what was received last')
})

test('an answer that starts within its call is not moved, even if it ends later', async (t) => {
  const viewer = await startViewer(t)
  const call = { name: 'call', kind: 3, ms: 60 }
  await viewer.send([{ id: 1, ...call }, { id: 3, ...call, trace: 2 }, { id: 5, ...call, trace: 3 }])
  const answer = { name: 'answer', kind: 2, ms: 40 }
  await viewer.send([{ id: 2, parent: 1, ...answer, at: 50 }, { id: 4, parent: 3, ...answer, trace: 2, at: 70 }, { id: 6, parent: 5, ...answer, trace: 3, at: -70 }], { service: 'stock' })
  const placed = await Promise.all([1, 2, 3].map(async (trace) => {
    const { rows: [, { start, shift }] } = await viewer.json(`/api/traces/${traceId(trace)}/rows`)
    return [start, shift]
  }))
  t.same(placed, [[50, undefined], [10, -60], [10, 80]], 'an answer that starts after its call, or before it, lies in the middle')
})

test('the text of a trace names how far a span was moved, once for all that moved with it', async (t) => {
  const viewer = await startViewer(t)
  const hours = 3 * 3_600_000
  await viewer.send([{ id: 1, name: 'call', kind: 3, ms: 60 }, { id: 4, parent: 1, name: 'timer', at: 5 }])
  await viewer.send([{ id: 2, parent: 1, name: 'answer', kind: 2, at: -hours, ms: 60 }, { id: 3, parent: 2, name: 'query', at: -hours + 10, ms: 20 }], { service: 'stock' })
  const lines = (await (await viewer.get(`/api/traces/${traceId(1)}/text`)).text()).trim().split('\n').slice(2)
  t.same(lines.map((line) => line.trim().split(/ {2,}/)), [
    ['CLIENT call', '60.0 ms'], ['SERVER answer', '60.0 ms', 'clock +3 h 0 m', 'stock'], ['INTERNAL query', '20.0 ms', 'stock'], ['INTERNAL timer', '10.0 ms']
  ])
})

test('the text of a trace has the first 500 attributes of a span, and counts the others', async (t) => {
  const viewer = await startViewer(t)
  const many = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`key${i}`, i]))
  await viewer.send([{ id: 1, attributes: many(20_000), events: [{ name: 'event', attributes: many(10) }] }, { id: 2, parent: 1, attributes: many(490), events: [{ name: 'event', attributes: many(10) }] }])
  const response = await viewer.get(`/api/traces/${traceId(1)}/text?attributes`)
  const lines = (await response.text()).split('\n').slice(2).map((line) => line.trim())
  t.same([lines[1], lines[500], lines[501], lines[502].slice(0, 13)], ['key0: 0', 'key499: 499', '… and 19,510 more', 'INTERNAL work'])
  t.same([lines[503], lines.slice(1002)], ['key0: 0', ['[event] key9: 9', '']], 'exactly 500 are all there')
})

test('a span that never ends, or ends before its start, is a moment', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ id: 1, ms: -5000 }])
  await viewer.post('/v1/traces', requestWith(2, () => {}), PROTOBUF)
  const { traces } = await viewer.json('/api/traces')
  t.same(traces.map(({ durationMs }) => durationMs), [0, 0])
  t.equal((await viewer.get(`/api/traces/${traceId(2)}/rows`)).status, 200)
})

test('a span that arrives twice is counted, and another span with its id is shown', async (t) => {
  const viewer = await startViewer(t)
  const spans = [{ id: 1, name: 'root' }, { id: 2, parent: 1, name: 'client', kind: 3 }]
  await viewer.send(spans)
  await viewer.send(spans)
  await viewer.send([{ id: 2, parent: 1, name: 'server', kind: 2 }])
  const { rows, trace } = await viewer.json(`/api/traces/${traceId(1)}/rows`)
  t.same(rows.map(({ name }) => name), ['root', 'client', 'server'])
  t.match(trace, { spans: 3, duplicates: 2 })
  t.match((await viewer.json(`/api/traces/${traceId(1)}/spans/${spanId(2)}`)).same, [{ name: 'server' }])
})

test('cycles are cut at their earliest span', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([
    { id: 1, parent: 3, name: 'a', at: 5 }, { id: 2, parent: 1, name: 'b', at: 1 }, { id: 3, parent: 2, name: 'c', at: 9 },
    { id: 4, parent: 4, name: 'itself', at: 20 }, { id: 5, parent: 1, name: 'hanging', at: 30 }
  ])
  const { rows } = await viewer.json(`/api/traces/${traceId(1)}/rows`)
  t.same(rows.map(({ name, depth, cycle }) => [name, depth, cycle]), [
    ['b', 0, true], ['c', 1, undefined], ['a', 2, undefined], ['hanging', 3, undefined], ['itself', 0, true]
  ])
  for (const view of ['', '/text', '/perfetto']) t.equal((await viewer.get(`/api/traces/${traceId(1)}${view}`)).status, 200, view)
})

test('a chain of 20,000 spans and a fan of 20,000 are laid out', async (t) => {
  const viewer = await startViewer(t)
  const count = 20_000
  await viewer.send(Array.from({ length: count }, (_, i) => ({ trace: 1, id: i + 1, ...(i > 0 && { parent: i }), name: 'deep', at: i / 1000, ms: 100 })))
  await viewer.send(Array.from({ length: count }, (_, i) => ({ trace: 2, id: i + 1, ...(i > 0 && { parent: 1 }), name: 'wide', kind: i === 0 ? 2 : 1, at: i / 1000, ms: 100 })))
  for (const trace of [1, 2]) {
    const { rows } = await viewer.json(`/api/traces/${traceId(trace)}/rows`)
    t.same([rows.length, rows[0].below, rows[count - 1].depth], [count, count - 1, trace === 1 ? count - 1 : 1])
    for (const view of ['/text', '/perfetto', '']) t.equal((await viewer.get(`/api/traces/${traceId(trace)}${view}`)).status, 200, view)
  }
  t.equal((await viewer.get('/api/routes/flame?route=wide')).status, 200)
  t.equal((await viewer.get(`/api/compare?a=${traceId(1)}&b=${traceId(2)}`)).status, 200)
})

test('a sender that hangs up in the middle is counted', async (t) => {
  const viewer = await startViewer(t)
  await new Promise((resolve) => {
    const socket = net.connect(viewer.port, '127.0.0.1', () => {
      socket.write('POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{', () => {
        socket.resetAndDestroy()
        resolve()
      })
    })
  })
  while (viewer.viewer.stats().refused.reasons.aborted !== 1) await new Promise(setImmediate)
  await stillAnswers(t, viewer, 'goes on')
})

test('a body of JSON with millions of values is refused before it is parsed, because each takes many times its bytes', async (t) => {
  const viewer = await startViewer(t)
  const body = gzipSync(Buffer.alloc(6_000_001, '{},'), { level: 1 })
  const answer = async (path) => {
    const response = await viewer.post(path, body, { ...JSON_TYPE, 'content-encoding': 'gzip' })
    return [response.status, await response.json()]
  }
  t.same(await answer('/v1/traces'), [400, { message: 'the body has more than 4,000,000 values' }])
  t.same(await answer('/api/import'), [400, { error: 'the body has more than 4,000,000 values' }])
  t.match(await viewer.json('/api/stats'), { refused: { requests: 1, reasons: { malformed: 1 } } })
  for (const many of ['[],', '0,', '[', '"",']) t.throws(() => bodyText(Buffer.alloc(20_000_000, many)), { message: 'the body has more than 4,000,000 values' }, many)
  const text = `"${',{[\\"'.repeat(1_000_000)}"`
  t.equal(bodyText(Buffer.from(text)) === text, true, 'what is in a text is no value')
  for (const cut of ['"', '"\\', '"a\\"']) t.equal(bodyText(Buffer.from(' '.repeat(4_000_000) + cut)).length, 4_000_000 + cut.length, cut)
})

test('JSON of many small values becomes protobuf in few pieces', (t) => {
  const { concat } = Buffer
  let most = 0
  Buffer.concat = (pieces, ...rest) => {
    most = Math.max(most, pieces.length)
    return concat(pieces, ...rest)
  }
  t.teardown(() => { Buffer.concat = concat })
  const spans = Array.from({ length: 20_000 }, (_, i) => ({ traceId: traceId(i + 1), spanId: spanId(1), name: 'x'.repeat(i % 300), attributes: [{ key: 'a', value: { intValue: i } }] }))
  spans[7].name = 'x'.repeat(100_000)
  const request = requestFromJson({ resourceSpans: [{ scopeSpans: [{ spans }] }] })
  t.ok(most > 10 && most < request.length / 4000, `${most} for ${request.length} bytes`)
  const store = new TraceStore()
  t.equal(store.receive(request).kept, 20_000)
  t.equal(store.at(301).root.name, '')
  t.equal(store.at(300).root.name.length, 299)
  t.end()
})
