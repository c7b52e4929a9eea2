'use strict'

// Metrics have limits in number and bytes, whatever is sent.

const http = require('node:http')
const { test } = require('tap')
const { startViewer, spansOf } = require('./support')
const { encodeRequest } = require('../support/otlp-encode')
const { bodyOf, storeAt, counter, gauge, histogram, exponential, NOW_MS, DELTA } = require('./metric-support')
const { runInChild } = require('../support/child')
const { readEvents } = require('../../viewer/commands/event-stream')
const { runCommand } = require('./command')
const { Malformed } = require('../../viewer/otlp/proto-reader')
const { MetricStatistics } = require('../../viewer/statistics/metrics')
const { Message } = require('../../viewer/otlp/proto-writer')
const { metricsFromJson } = require('../../viewer/otlp/json-metrics')
const { logsFromJson } = require('../../viewer/otlp/json-request')
const { SentResource } = require('../../viewer/otlp/resource')

const PROTOBUF = { 'content-type': 'application/x-protobuf' }
const MIB = 1024 * 1024
const S = 1000
const HOSTILE = ['__proto__', 'constructor', '<img src=x onerror=alert(1)>', '\u001b[2J\u0007', '\u202eevil', 'a\nb', '\ud800', "'; DROP TABLE", ' ', 'x'.repeat(5000)]

test('hostile names and values are cut texts, and cannot drive a terminal', async (t) => {
  const viewer = await startViewer(t)
  const time = Date.now()
  for (const name of HOSTILE) {
    const metric = { ...gauge([{ time, asInt: 1, attributes: { [name]: name } }], name), unit: name, description: name }
    t.equal((await viewer.post('/v1/metrics', bodyOf([metric], { service: name, scope: name }), PROTOBUF)).status, 200)
  }
  const text = await (await viewer.get('/api/metrics')).text()
  const { instruments } = JSON.parse(text)
  t.equal(instruments.length, HOSTILE.length)
  t.ok(text.length < 20_000, `${text.length}`)
  for (const { name, attributes } of instruments) {
    const [key] = Object.keys(attributes)
    const query = new URLSearchParams({ name, by: key.slice(0, 50).includes(',') ? '' : key, attr: key })
    const { series } = await viewer.json(`/api/metrics/data?${query}`)
    t.equal(series.length, 1, JSON.stringify(name.slice(0, 20)))
    t.same(Object.entries(series[0].attributes), Object.entries(attributes).map(([each, [value]]) => [each, value]))
  }
  for (const args of [['metrics'], ['metrics', HOSTILE[1]], ['metrics', HOSTILE[3]], ['metrics', HOSTILE[4]]]) {
    const { code, stdout } = await runCommand(t, [...args, '--port', String(viewer.port)]).exit
    t.equal(code, 0)
    t.notMatch(stdout, /NaN/)
    // eslint-disable-next-line no-control-regex
    t.notMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u007f\u202e]/)
  }
})

test('every cut and every changed byte of a body is refused or read, and the answers can be made', async (t) => {
  const { store, list, data, overview } = storeAt()
  const times = { start: NOW_MS - 10 * S, time: NOW_MS, attributes: { a: 'b', n: 5 }, exemplars: [{ value: 1, trace: '01'.repeat(16) }] }
  const good = bodyOf([
    counter([{ ...times, asInt: 3 }]), gauge([{ ...times, asDouble: 1.5 }]),
    histogram([{ ...times, count: 3, sum: 4, min: 1, max: 2, bucketCounts: [1, 2], explicitBounds: [1] }], { name: 'http.server.request.duration' }),
    exponential([{ ...times, scale: 3, count: 6, sum: 4, zeroCount: 1, positive: { offset: -5, bucketCounts: [1, 0, 2] }, negative: { offset: 7, bucketCounts: [2] } }]),
    { name: 'old', summary: { dataPoints: [{ ...times, exemplars: [], count: 3, sum: 4, quantileValues: [{ quantile: 0.5, value: 1 }] }] } }
  ])
  const outcomes = { taken: 0, refused: 0 }
  const receive = async (body) => {
    try {
      store.receiveMetrics(body)
      outcomes.taken++
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      outcomes.refused++
    }
  }
  for (let at = 0; at < good.length; at++) {
    await receive(good.subarray(0, at))
    for (const value of [0, 0x7f, 0xff, good[at] ^ 1, good[at] + 1]) {
      const changed = Buffer.from(good)
      changed[at] = value
      await receive(changed)
    }
  }
  t.ok(outcomes.taken > 1000 && outcomes.refused > 100, JSON.stringify(outcomes))
  for (const { name, attributes } of list().instruments) {
    const answer = JSON.stringify(await data({ name, by: Object.keys(attributes).filter((key) => !key.includes(',')).slice(0, 10).join(','), last: '1h' }))
    if (answer.includes('undefined')) t.fail(answer)
  }
  t.ok(JSON.stringify(await overview('last=1h')).length > 100)
  t.equal(store.metrics.bytes, sumOfBytes(store.metrics), 'the bytes are those of what is held')
})

// What the store counts, counted again.
function sumOfBytes (metrics) {
  let bytes = 0
  for (const instrument of metrics.instruments()) {
    bytes += instrument.bytes + [...instrument.senders.values()].reduce((sum, { bytes: each }) => sum + each, 0)
    for (const { fixedBytes, values } of instrument.series.values()) {
      bytes += fixedBytes + values.reduce((sum, value) => sum + 46 + (value?.bytes ?? 0), 0)
    }
  }
  return bytes
}

test('an attack of buckets, scales and offsets is bounded', async (t) => {
  const { send, data, store } = storeAt()
  const times = { start: NOW_MS - 10 * S, time: NOW_MS }
  const million = new Array(1_000_000).fill(1)
  t.equal(send([histogram([{ ...times, count: 1, bucketCounts: million, explicitBounds: million.slice(1).map((_, i) => i) }], { temporality: DELTA, name: 'a' })]), 1)
  t.equal(send([exponential([{ ...times, scale: 0, count: 1, positive: { offset: 0, bucketCounts: million } }], { temporality: DELTA, name: 'b' })]), 1)
  t.equal(send([gauge([{ asInt: 1, attributes: Object.fromEntries(million.slice(0, 100_000).map((_, i) => [`k${i}`, 'v'])) }])]), 1)
  t.equal(store.metrics.stats.dropped.malformed, 3)
  const extremes = [
    { scale: 20, positive: { offset: 2 ** 31 - 1, bucketCounts: [1, 2] } }, { scale: 20, positive: { offset: -(2 ** 31), bucketCounts: [1, 2] } },
    { scale: -10, positive: { offset: 2 ** 31 - 1, bucketCounts: [1, 2] } }, { scale: -10, positive: { offset: -(2 ** 31), bucketCounts: [1, 2] } },
    { scale: -10, positive: { offset: -1, bucketCounts: [1, 1] }, negative: { offset: -1, bucketCounts: [1, 1] } },
    { scale: 20, positive: { offset: 0, bucketCounts: new Array(9000).fill(1) } },
    { scale: 20, positive: { offset: -(2 ** 31), bucketCounts: [1] }, negative: { offset: 2 ** 31 - 1, bucketCounts: [1] }, min: -1e308, max: NaN },
    { scale: 3, positive: { offset: 0, bucketCounts: [2 ** 53, 2 ** 53] }, min: 5, max: -5, sum: -Infinity }
  ]
  for (const [i, values] of extremes.entries()) t.equal(send([exponential([{ ...times, count: 3, sum: 1, attributes: { i: String(i) }, ...values }], { temporality: DELTA })]), 0)
  const { series } = await data('name=time&by=i&points=1')
  t.equal(series.length, extremes.length)
  for (const { attributes, p50, p99, max } of series) for (const [value] of [p50, p99, max]) t.ok(value === null || Number.isFinite(value), `${attributes.i}: ${value}`)
  const { series: [merged] } = await data('name=time&points=1')
  t.ok(Number.isFinite(merged.p50[0]), JSON.stringify(merged))
  t.ok(store.metrics.bytes < 60_000, `${store.metrics.bytes}`)
})

test('lists of JSON are cut, and a list above the limit is dropped', (t) => {
  const of = (length) => metricsFromJson({
    resourceMetrics: [{
      scopeMetrics: [{
        metrics: [
          { name: 'a', exponentialHistogram: { dataPoints: [{ count: 1, positive: { bucketCounts: new Array(length).fill(1) } }] } },
          { name: 'b', histogram: { dataPoints: [{ count: 1, bucketCounts: new Array(length).fill(1), explicitBounds: Array.from({ length: length - 1 }, (_, i) => i) }] } }
        ]
      }]
    }]
  })
  t.ok(of(100_000).length < 30_000, `${of(100_000).length}`)
  t.ok(of(500).length < 9000, 'packed')
  const { store } = storeAt()
  t.equal(store.receiveMetrics(of(501)), 0)
  t.equal(store.receiveMetrics(of(502)), 1)
  t.equal(store.receiveMetrics(of(10_000)), 1)
  t.equal(store.receiveMetrics(of(10_001)), 2)
  t.end()
})

test('deeply nested and long attributes are bounded, and still tell series apart', async (t) => {
  const { store } = storeAt()
  const value = (depth) => {
    let inner = new Message()
    inner.text(1, 'x')
    for (let i = 0; i < depth; i++) {
      const list = new Message()
      list.message(1, inner)
      inner = new Message()
      inner.message(5, list)
    }
    return inner
  }
  const bodyWith = (attribute) => {
    const point = new Message()
    point.message(7, attribute)
    point.double(4, 1)
    const wrap = (field, message) => {
      const outer = new Message()
      outer.message(field, message)
      return outer
    }
    const metric = wrap(5, wrap(1, point))
    metric.text(1, 'm')
    return wrap(1, wrap(2, wrap(2, metric))).finish()
  }
  const deep = new Message()
  deep.text(1, 'k')
  deep.message(2, value(2000))
  t.equal(store.receiveMetrics(bodyWith(deep)), 0)
  const { send, list } = storeAt()
  send([gauge(['a', 'b'].map((end) => ({ asInt: 1, attributes: { k: 'x'.repeat(6000) + end } })))])
  t.match(list(), { series: 2, instruments: [{ series: 2, attributes: { k: { length: 1 } } }] }, 'cut to the same text')
  t.end()
})

test('a metric with too many series loses its own first, and other metrics are kept', async (t) => {
  const { send, list, store } = storeAt()
  const many = (from, count, name = 'bomb') => gauge(Array.from({ length: count }, (_, i) => ({ time: NOW_MS, asInt: 1, attributes: { user: `u${from + i}` } })), name)
  t.equal(send([many(0, 10, 'mine')]), 0)
  t.equal(send([many(0, 5000)]), 3010)
  t.equal(send([many(100, 30, 'mine')]), 0, 'a smaller metric has room')
  t.equal(list().series, 2000)
  t.match(list().instruments.map(({ name, series }) => [name, series]), [['bomb', 1960], ['mine', 40]])
  t.equal(store.metrics.stats.dropped.series, 3010)
  send([many(9000, 10)], { atMs: NOW_MS + 400 * S })
  t.equal(list().series, 2000, 'a series that is silent for five minutes makes room')
  t.equal(store.metrics.stats.dropped.series, 3010)
  t.equal(store.metrics.bytes, sumOfBytes(store.metrics))
  store.receiveMetrics(bodyOf([gauge([{ asInt: 1 }], 'later')]))
  t.ok(list().instruments.some(({ name }) => name === 'later'))
  t.end()
})

test('a metric lists a hundred attributes with a hundred values each, and every value of those that it lists', (t) => {
  const { send, list } = storeAt()
  const points = (count, attributes) => gauge(Array.from({ length: count }, (_, i) => ({ asInt: 1, attributes: attributes(i) })))
  send([points(100, (i) => ({ [`k${i}`]: 'v' }))])
  t.match(list().instruments, [{ attributesMore: false }])
  send([points(2, (i) => ({ [`k${100 * i}`]: 'w' }))])
  const [{ attributes, attributesMore }] = list().instruments
  t.match([Object.keys(attributes).length, attributes.k0, attributes.k100, attributesMore], [100, ['v', 'w'], undefined, true])
  send([points(150, (i) => ({ k1: `v${i}` }))])
  t.equal(list().instruments[0].attributes.k1.length, 100)
  t.end()
})

test('many metrics with one series each are bounded, too', async (t) => {
  const { send, list } = storeAt()
  t.equal(send(Array.from({ length: 3000 }, (_, i) => gauge([{ asInt: 1 }], `m${i}`))), 1000)
  t.equal(list().instruments.length, 2000)
  t.end()
})

test('a series that finds no room does not search all metrics again', (t) => {
  const { send } = storeAt()
  send(Array.from({ length: 2000 }, (_, i) => gauge([{ asInt: 1 }], `m${i}`)))
  const { values } = Map.prototype
  let searches = 0
  Map.prototype.values = function () { // eslint-disable-line no-extend-native
    if (this.size === 2000) searches++
    return values.call(this)
  }
  t.teardown(() => { Map.prototype.values = values }) // eslint-disable-line no-extend-native
  const dropped = send([gauge(Array.from({ length: 1000 }, (_, i) => ({ asInt: 1, attributes: { i: String(i) } })), 'more')])
  Map.prototype.values = values // eslint-disable-line no-extend-native
  t.equal(dropped, 1000)
  t.ok(searches < 10, `${searches}`)
  t.end()
})

test('metrics use a quarter of the memory, and the oldest slots make room', async (t) => {
  const { send, store, data, clock } = storeAt({ maxBytes: 4 * MIB })
  const bucketCounts = Array.from({ length: 100 }, (_, i) => i + 1)
  for (let at = 0; at < 1800; at += 10) {
    clock.ms = NOW_MS + at * S
    send([exponential(Array.from({ length: 30 }, (_, i) => ({
      start: clock.ms - 10 * S, time: clock.ms, count: 5050, sum: 1, scale: 2, positive: { offset: 0, bucketCounts }, attributes: { i: String(i) }
    })), { temporality: DELTA })])
    if (store.metrics.bytes > MIB) t.fail(`${store.metrics.bytes}`)
  }
  t.ok(store.metrics.bytes > MIB * 0.8)
  t.ok(store.metrics.stats.dropped.evicted > 3000)
  t.equal(store.metrics.bytes, sumOfBytes(store.metrics))
  t.ok(store.bytes > store.metrics.bytes, 'counted in the store')
  const { atMs, series } = await data('name=time')
  const first = series[0].rate.findIndex((rate) => rate !== null)
  t.ok(first > 100 && series[0].rate.slice(first, -1).every((rate) => rate !== null), `${first} of ${atMs.length}: the newest are held`)
})

test('a series is removed after an hour', async (t) => {
  const { send, list, store, clock } = storeAt()
  send([counter([{ start: NOW_MS - 5 * S, asInt: 1, exemplars: [{ value: 1, trace: '01'.repeat(16) }] }])])
  t.match(list(), { series: 1 })
  clock.ms = NOW_MS + 3700 * S
  t.match(list(), { series: 0, instruments: [], bytes: 0 })
  t.equal(store.bytes, 0)
  t.end()
})

test('series without slots to drop make room too, and not at every point', (t) => {
  const { send, store } = storeAt({ maxBytes: MIB })
  const limit = MIB / 4
  const falls = []
  const bucketCounts = new Array(150).fill(1)
  const of = (i, start) => exponential([{ start, count: 150, sum: 1, scale: 2, positive: { offset: 0, bucketCounts }, attributes: { i: String(i) } }])
  for (let i = 0; i < 640; i++) {
    const before = store.metrics.bytes
    send([of(i % 80, 1 + Math.floor(i / 80))])
    if (store.metrics.bytes < before) falls.push(store.metrics.bytes)
    if (store.metrics.bytes > limit) t.fail(`${store.metrics.bytes}`)
  }
  t.ok(falls.length > 0 && falls.every((bytes) => bytes < limit * 0.91), falls.join(' '))
  t.end()
})

test('other work runs between the figures of series, and of routes', async (t) => {
  const { send, store } = storeAt()
  const of = (i) => ({ start: NOW_MS - 10 * S, time: NOW_MS, count: 2, sum: 1, bucketCounts: [1, 1], explicitBounds: [1], attributes: { 'http.route': `/${i}` } })
  send([histogram(Array.from({ length: 30 }, (_, i) => of(i)), { name: 'http.server.request.duration' })])
  const statistics = new MetricStatistics(store, { now: () => NOW_MS, sliceMs: -1 })
  for (const ask of [() => statistics.data(new URLSearchParams('name=http.server.request.duration&by=http.route')), () => statistics.overview(new URLSearchParams())]) {
    let turns = 0
    let isDone = false
    const turn = () => { if (!isDone) { turns++; setImmediate(turn) } }
    setImmediate(turn)
    await ask()
    isDone = true
    t.ok(turns >= 58, `${turns}: for each of the 30, when it is read and when its figures are made`)
  }
})

test('other work runs between the points of one chart, because each may have thousands of buckets', async (t) => {
  const { send, store } = storeAt()
  send([histogram([{ start: NOW_MS - 10 * S, time: NOW_MS, count: 2, sum: 1, bucketCounts: [1, 1], explicitBounds: [1] }], { name: 'http.server.request.duration' })])
  const statistics = new MetricStatistics(store, { now: () => NOW_MS, sliceMs: -1 })
  const restsOf = t.capture(global, 'setImmediate', setImmediate)
  for (const ask of [() => statistics.data(new URLSearchParams('name=http.server.request.duration')), () => statistics.overview(new URLSearchParams())]) {
    await ask()
    const rests = restsOf().length
    t.ok(rests >= 360, `${rests}`)
  }
})

test('traces make room for metrics', (t) => {
  const { send, store } = storeAt({ maxBytes: MIB })
  for (let trace = 1; store.evicted.traces === 0; trace++) store.receive(encodeRequest(spansOf([{ trace, attributes: { text: 'x'.repeat(5000) } }])))
  const { size } = store
  send([gauge(Array.from({ length: 40 }, (_, i) => ({ asInt: i, attributes: { i: String(i) } })))])
  t.ok(store.size < size && store.bytes <= MIB)
  t.equal(store.metrics.size, 40)
  t.end()
})

const large = (length, i) => ({ text: String(i).padEnd(length, 'x') })

test('points with a large resource are dropped, the sender is told, and the traces stay', async (t) => {
  const viewer = await startViewer(t, { maxBytes: MIB })
  await viewer.send([{ trace: 1 }])
  const { bytes } = await viewer.json('/api/stats')
  for (let i = 0; i < 3; i++) {
    const response = await viewer.post('/v1/metrics', bodyOf([gauge([{ time: Date.now(), asInt: 1 }])], { resource: large(200_000, i) }), PROTOBUF)
    t.match(Buffer.from(await response.arrayBuffer()).toString(), /resource and scope of more than 64 KiB/)
  }
  t.match(await viewer.json('/api/stats'), { traces: 1, bytes, metrics: { series: 0, dropped: { resource_too_large: 3 } } })
})

test('the resources of series and of loose lines count against their share of the memory', (t) => {
  const { send, store } = storeAt({ maxBytes: 4 * MIB })
  store.receive(encodeRequest(spansOf([{ trace: 1 }])))
  for (let i = 0; i < 40; i++) {
    const resource = large(60_000, i)
    send([gauge([{ asInt: 1 }])], { resource })
    store.receiveLines(logsFromJson({ resourceLogs: [{ resource: attributesIn(resource), scopeLogs: [{ logRecords: [{ body: { stringValue: 'x' } }] }] }] }))
  }
  t.ok(store.bytes < 2 * MIB, `${store.bytes}`)
  t.equal(store.size, 1, 'the trace stays')
  t.ok(store.metrics.size > 1 && store.lines.size > 1 && store.lines.dropped.evicted > 30)
  t.equal(store.metrics.size + store.metrics.stats.dropped.series + store.metrics.stats.dropped.evicted, 40)
  t.end()
})

function attributesIn (values) {
  return { attributes: Object.entries(values).map(([key, stringValue]) => ({ key, value: { stringValue } })) }
}

test('a resource is read once for all of its scopes, and not for those without points', (t) => {
  const wrap = (field, ...messages) => {
    const outer = new Message()
    for (const message of messages) outer.message(field, message)
    return outer
  }
  const point = new Message()
  point.double(4, 1)
  const metric = wrap(5, wrap(1, point))
  metric.text(1, 'm')
  const scopes = Array.from({ length: 200 }, (_, i) => {
    const scope = new Message()
    scope.text(1, `s${i}`)
    const scoped = wrap(1, scope)
    scoped.message(2, i < 100 ? metric : new Message())
    return scoped
  })
  const list = wrap(2, ...scopes)
  list.text(1, '')
  const { store } = storeAt()
  const made = []
  const { get } = Object.getOwnPropertyDescriptor(SentResource.prototype, 'hash')
  Object.defineProperty(SentResource.prototype, 'hash', { configurable: true, get () { made.push(this); return get.call(this) } })
  t.teardown(() => Object.defineProperty(SentResource.prototype, 'hash', { get }))
  store.receiveMetrics(wrap(1, list).finish())
  t.equal(new Set(made).size, 1)
  t.ok(made.length <= 200, 'a scope without points asks for nothing')
  const origins = store.metrics.instruments().flatMap(({ series }) => [...series.values()].map(({ origin }) => origin))
  t.match([origins.length, new Set(origins.map(({ resource }) => resource)).size], [100, 1], 'one copy')
  const bytes = Buffer.from('ab')
  const resource = new SentResource(bytes, '')
  const { hash } = resource
  bytes.fill(0)
  t.equal(resource.hash, hash, 'is made once')
  t.end()
})

test('a point that spreads over a long time is bounded', (t) => {
  const { send, store } = storeAt()
  send([counter([{ start: 1, time: NOW_MS, asInt: 5 }], { temporality: DELTA })])
  t.ok(store.metrics.bytes < 5000, 'five minutes at most')
  t.end()
})

// A process with little memory shows if anything is not counted.
test('a million series in each of many requests, of services without end, stay within the bound', { timeout: 180_000 }, async (t) => {
  const child = runInChild(t, async ({ root, say }) => {
    const { bytesInUse } = require(`${root}/test/support/bytes-in-use`)
    const { TraceStore } = require(`${root}/viewer/store/trace-store`)
    const { bodyOf, gauge, exponential, histogram } = require(`${root}/test/viewer/metric-support`)
    const MAX = 16 * 1024 * 1024
    let now = 1_763_753_000_000
    const store = new TraceStore({ maxBytes: MAX, now: () => now })
    const counts = Array.from({ length: 120 }, (_, i) => i)
    const bodies = (round) => [
      bodyOf([gauge(Array.from({ length: 25_000 }, (_, i) => ({ time: now, asInt: i, attributes: { 'user.id': `user-${round}-${i}`, text: 'x'.repeat(50) } })))]),
      ...Array.from({ length: 50 }, (_, i) => bodyOf([
        exponential([{ start: now - 10_000, time: now, count: 1, sum: 1, scale: 3, positive: { offset: round, bucketCounts: counts }, exemplars: [{ value: i, trace: `${round}`.padStart(32, 'a') }] }]),
        histogram([{ start: 1, time: now, count: 1, sum: 1, bucketCounts: counts, explicitBounds: counts.slice(1) }], { name: 'h' })
      ], { resource: { instance: `i${i % 30}-${round % 7}` } }))
    ]
    for (const body of bodies(0)) new TraceStore().receiveMetrics(body) // so that the code is loaded
    const before = await bytesInUse()
    let most = 0
    for (let round = 0; round < 40; round++) {
      for (const body of bodies(round)) store.receiveMetrics(body)
      most = Math.max(most, store.metrics.bytes)
      now += 10_000
    }
    say({ most, bytes: store.bytes, grown: await bytesInUse() - before, stats: store.metrics.stats })
  }, { nodeArgs: ['--max-old-space-size=120'], killAfterMs: 150_000 })
  const { code, said: [said], stderr } = await child.exit
  t.match([code, stderr], [0, ''])
  t.ok(said.most <= 4 * MIB, JSON.stringify(said))
  t.ok(said.stats.dropped.series > 900_000, 'a million series came')
  t.ok(said.grown < said.bytes * 1.15 + 300_000, `counted ${said.bytes}, on the heap ${said.grown}`)
  t.ok(said.bytes > 2 * MIB)
})

test('pages are notified of new metrics, at most once a second', async (t) => {
  const viewer = await startViewer(t)
  const response = await new Promise((resolve) => http.get({ port: viewer.port, host: '127.0.0.1', path: '/api/events', agent: false }, resolve))
  t.teardown(() => response.destroy())
  const events = readEvents(response)
  const next = async (wanted) => {
    for (;;) {
      const { value } = await events.next()
      if (value.event === wanted) return value.data
    }
  }
  await next('hello')
  for (let i = 0; i < 5; i++) await viewer.post('/v1/metrics', bodyOf([gauge([{ time: Date.now(), asInt: i }])]), PROTOBUF)
  t.same(await next('metrics'), {})
  t.match(await viewer.json('/api/stats'), { received: { metrics: 5 }, metrics: { series: 1, points: 5 } })
})
