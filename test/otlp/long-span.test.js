'use strict'

// Spans that are longer than a chunk, or may be. They are sent complete up to the limit. Beyond it, they lose their largest attributes,
// events and links. They are read with an independent decoder.

const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { randomFrom } = require('../support/random')
const { decodeSpans } = require('../support/otlp-decode')
const { ExportRequestPrefix } = require('../../lib/otlp/request')
const { SpanEncoder } = require('../../lib/otlp/span-encoder')
const { Chunk } = require('../../lib/export/chunk-buffer')

const SPAN_BYTES_MAX = 4 * 1024 * 1024

async function sent (t, work, { path = '/', routes, ...trace } = {}) {
  const sink = await startSink(t)
  const lines = []
  const { app } = await tracedApp(t, {
    listen: false,
    fastify: { logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } },
    trace: { spanProcessors: undefined, exporter: { url: sink.url }, outbound: false, ...trace },
    routes: routes ?? ((app) => app.get('/*', async (request) => { await work(request.trace.span, request); return 'ok' }))
  })
  const { statusCode } = await app.inject(path)
  await app.lightTrace.flush()
  return { app, sink, spans: sink.spans, stats: app.lightTrace.stats().spans, codes: lines.map(({ code }) => code), lines, statusCode }
}

// A list of short strings. The estimate assumes three bytes for each of their characters.
const texts = (count, length, char = 'x') => Array.from({ length: count }, () => char.repeat(length))

for (const [what, char, count] of [['ASCII', 'x', 4020], ['two bytes', 'ä', 2010], ['three bytes', '€', 1340], ['pairs', '😀', 1000]]) {
  test(`nearly 4 MiB of ${what} are sent unchanged`, async (t) => {
    const length = char === '😀' ? 512 : 1024
    const lists = Array.from({ length: 5 }, () => texts(Math.floor(count / 5), length, char))
    const { spans, stats, codes } = await sent(t, (span) => lists.forEach((list, i) => span.setAttribute(`list${i}`, list)))
    t.equal(spans.length, 1)
    lists.forEach((list, i) => t.strictSame(spans[0].attributes[`list${i}`], list))
    t.equal(spans[0].droppedAttributesCount, 0)
    t.match(stats, { accepted: 1, delivered: 1, dropped: {} })
    t.strictSame(codes, [])
  })
}

test('a span that just fits loses nothing, and a slightly longer one loses its largest attribute', async (t) => {
  const padding = async (last) => {
    const { sink, spans, codes } = await sent(t, (span) => {
      for (let i = 0; i < 4; i++) span.setAttribute(`list${i}`, texts(1000, 1024))
      span.setAttribute('short', 'short')
      span.setAttribute('rest', 'y'.repeat(last))
    }, { limits: { attributeValueLength: 1e6 } })
    return { bytes: sink.requests[0].bytes, rest: spans[0].attributes.rest, short: spans[0].attributes.short, dropped: spans[0].droppedAttributesCount, codes }
  }
  const first = await padding(10)
  const envelope = 2000 // resource and scope, which are not part of the span
  const room = SPAN_BYTES_MAX - first.bytes
  const fits = await padding(room - envelope)
  t.equal(fits.dropped, 0)
  t.strictSame(fits.codes, [])
  const tooLong = await padding(room + envelope)
  t.equal(tooLong.short, 'short')
  t.equal(tooLong.dropped, 1)
  t.strictSame(tooLong.codes, ['LT_WARN_SPAN_CUT'])
})

test('with a buffer of 64 KiB, a URL of 15 kB costs no other attribute', async (t) => {
  for (const path of [`/${'p'.repeat(15_000)}`, `/?${'a=b&'.repeat(3750)}`, `/${'%C3%A4'.repeat(2500)}`]) {
    const { spans, stats, codes } = await sent(t, (span) => span.setAttribute('user.id', 7), { path, buffer: { maxBytes: 64 * 1024 } })
    t.equal(spans.length, 1)
    const { attributes } = spans[0]
    t.equal(attributes['url.query'] === undefined ? attributes['url.path'] : `${attributes['url.path']}?${attributes['url.query']}`, path)
    t.equal(attributes['user.id'], 7)
    t.match(stats, { delivered: 1, dropped: {} })
    t.strictSame(codes, [])
  }
})

test('the largest attributes, events and links are left out and counted, and the others are complete', async (t) => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const spanId = 'b7ad6b7169203331'
  const { sink, spans, stats, codes, lines } = await sent(t, (span) => {
    span.setAttributes({ short: 'short', number: 7, long: 'ä'.repeat(16_000), bytes: new Uint8Array(6000).fill(7) })
    span.setAttribute('map', { id: 'seven', body: '€'.repeat(16_000), list: texts(3, 9000) })
    span.addEvent('small event', { short: 'event' })
    span.addEvent('event', { short: 'event', long: '😀'.repeat(8000) })
    span.addLink({ context: { traceId, spanId, traceFlags: 1 }, attributes: { long: 'l'.repeat(16_000) } })
    span.addLink({ context: { traceId, spanId, traceFlags: 1 }, attributes: { short: 'link' } })
    span.recordException(Object.assign(new Error('m'.repeat(1000)), { stack: 's'.repeat(12_000) }))
    span.setStatus({ code: 2, message: 'status' })
  }, { buffer: { maxBytes: 64 * 1024 } })
  t.equal(spans.length, 1)
  const [{ attributes, events, links, status, droppedAttributesCount, droppedEventsCount, droppedLinksCount }] = spans
  t.ok(sink.requests[0].bytes > 18 * 1024 && sink.requests[0].bytes <= 32 * 1024, `${sink.requests[0].bytes}`)
  t.match(attributes, { short: 'short', number: 7, 'http.route': '/*' })
  t.equal(attributes.bytes.length, 6000)
  t.notOk('long' in attributes || 'map' in attributes)
  t.strictSame(events.map(({ name, attributes }) => attributes.short ?? name), ['event', 'exception'])
  t.equal(events[1].attributes['exception.stacktrace'], 's'.repeat(12_000))
  t.strictSame(links.map(({ attributes }) => attributes), [{ short: 'link' }])
  t.match(status, { code: 'ERROR', message: 'status' })
  t.strictSame([droppedAttributesCount, droppedEventsCount, droppedLinksCount], [2, 1, 1])
  t.match(stats, { delivered: 1, dropped: {} })
  t.strictSame(codes, ['LT_WARN_SPAN_CUT'])
  t.match(lines[0].msg, /32768/)
})

test('a span whose name and status alone do not fit is dropped, counted and logged, and the next one is sent', async (t) => {
  const { app, sink, stats, lines, codes } = await sent(t, (span, request) => {
    if (request.url === '/usual') return
    span.updateName('ä'.repeat(10_000))
    span.setStatus({ code: 2, message: 'm'.repeat(14_000) })
  }, { buffer: { maxBytes: 64 * 1024 } })
  t.strictSame(sink.spans, [])
  t.match(stats, { accepted: 1, delivered: 0, dropped: { too_large: 1 } })
  t.strictSame(codes, ['LT_WARN_LOSS'])
  t.match(lines[0].msg, /name and status/)
  await app.inject('/usual')
  await app.lightTrace.flush()
  t.strictSame(sink.spans.map(({ attributes }) => attributes['url.path']), ['/usual'])
})

test('a child loses its largest attributes, too, and the user\'s own span object stays complete', async (t) => {
  let kept
  const { spans, stats } = await sent(t, null, {
    buffer: { maxBytes: 64 * 1024 },
    routes: (app) => app.get('/', async (request) => {
      return request.trace.withSpan('child', (child) => {
        child.setAttribute('short', 1)
        for (let i = 0; i < 10; i++) child.setAttribute(`long${i}`, 'c'.repeat(16_000))
        kept = child
        return 'ok'
      })
    })
  })
  t.strictSame(spans.map(({ name }) => name), ['child', 'GET /'])
  t.equal(spans[0].attributes.short, 1)
  t.strictSame(Object.keys(spans[0].attributes), ['short', 'long8', 'long9'])
  t.equal(spans[0].attributes.long9, 'c'.repeat(16_000))
  t.equal(spans[0].droppedAttributesCount, 8)
  t.equal(kept.attributes.long9.length, 16_000)
  t.equal(kept.droppedAttributesCount, 0)
  t.match(stats, { delivered: 2, dropped: {} })
})

// ---- for any span: the written span fits and is correct, and what it leaves out is counted

// Replaces the exporter and accepts no estimate, so the exact size is needed.
class CountingExporter {
  constructor (spanBytesMax) {
    this.spanBytesMax = spanBytesMax
    this.isCut = false
    this.isTooLarge = false
  }

  isLong () { return true }
  reserve (byteCount, isCounted = false) {
    if (!isCounted) return null
    this.reserved = byteCount
    return new Chunk(Buffer.alloc(byteCount))
  }

  commit (chunk, end) {
    this.written = end
    this.span = decode(chunk.bytes.subarray(0, end))
  }

  logCut () { this.isCut = true }
  dropTooLarge () { this.isTooLarge = true }
}

/** Decodes the span of a chunk. */
function decode (bytes) {
  return decodeSpans(Buffer.concat([new ExportRequestPrefix({ attributes: {} }).head(bytes.length), bytes]))[0]
}

/** Returns how many of each there were: written plus dropped. */
function counts ({ attributes, events, links, droppedAttributesCount, droppedEventsCount, droppedLinksCount }) {
  return [Object.keys(attributes).length + droppedAttributesCount, events.length + droppedEventsCount, links.length + droppedLinksCount]
}

const VALUES = ['', 'x', 'ä€😀', 'long '.repeat(300), 'ü'.repeat(700), 0, -0, 1, -1, 127, 128, 2 ** 31, 2 ** 53 - 1, -(2 ** 53) + 1, 2 ** 60, 0.5, NaN, -Infinity, true, false, null,
  new Uint8Array(0), new Uint8Array(3), new Uint8Array(300), [], ['a', 1, null, [2.5, ['deep']], { k: 'v' }], {}, { a: 1, ä: { b: ['text'.repeat(100), -5] }, toString: 'own' }, texts(20, 50), [1, 2, 3, -4]]

test('any span fits after it is cut, and what is left out is counted', { skip: without('sdk') }, async (t) => {
  const spans = []
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: [{ onStart () {}, onEnd: (span) => spans.push(span), async forceFlush () {}, async shutdown () {} }], limits: { attributes: 200 } },
    routes: (app) => app.get('/*', async (request) => { decorate(request.trace.span, randomFrom(request.headers['x-n'])); return 'ok' })
  })
  for (let n = 1; n <= 400; n++) await app.inject({ url: n % 3 === 0 ? `/p${n}?q=ü&token=t` : '/x', headers: { 'x-n': String(n), ...(n % 2 === 0 && { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=b' }) } })
  t.equal(spans.length, 400)
  const outcomes = { whole: 0, cut: 0, lost: 0 }
  for (const span of spans) {
    const whole = new CountingExporter(Infinity)
    new SpanEncoder(whole).encodeLong(span)
    t.strictSame(counts(whole.span), counts(span))
    t.ok(whole.reserved >= whole.written && whole.reserved < whole.written * 1.5 + 400, `${whole.reserved} for ${whole.written}`)
    for (const part of [2, 1, 0.9, 0.5, 0.2, 0.05]) {
      const exporter = new CountingExporter(Math.ceil(whole.written * part) + 200)
      new SpanEncoder(exporter).encodeLong(span)
      outcomes[exporter.isTooLarge ? 'lost' : exporter.isCut ? 'cut' : 'whole']++
      if (exporter.isTooLarge) continue
      if (exporter.reserved > exporter.spanBytesMax || exporter.written > exporter.reserved) t.fail(`${exporter.written} in ${exporter.reserved} of ${exporter.spanBytesMax}`)
      t.strictSame(counts(exporter.span), counts(whole.span))
    }
  }
  t.ok(outcomes.whole > 400 && outcomes.cut > 400 && outcomes.lost > 0, JSON.stringify(outcomes))
})

function decorate (span, random) {
  const some = (most) => Object.fromEntries(Array.from({ length: Math.floor(random() * most) }, (_, i) => [`${i}key€`, VALUES[Math.floor(random() * VALUES.length)]]))
  span.setAttributes(some(40))
  for (let i = random() * 4; i > 1; i--) span.addEvent('event ü', some(10))
  for (let i = random() * 4; i > 1; i--) span.addLink({ context: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1, traceState: { serialize: () => 'k=v' } }, attributes: some(10) })
  if (random() < 0.3) span.setStatus({ code: 2, message: random() < 0.5 ? 'wrong '.repeat(100) : '' })
  if (random() < 0.3) span.updateName('a name ü')
}
