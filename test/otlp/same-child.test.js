'use strict'

// A child that is started with only a name is copied from a template. A child with more fields is written field by field. Both must equal
// what a processor sees of the same span.

const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { fromBytes, fromObject } = require('../support/same-span')

const NAMES = ['load user', '', 'größe', '日本', '🦊', 'lone \ud800', '__proto__', 'x'.repeat(100), 'x'.repeat(101), 'x'.repeat(16384), `${'x'.repeat(16383)}🦊`, 'x'.repeat(20000), 7, null]
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const noop = () => {}
const DOINGS = {
  nothing: noop,
  attributes: (span) => span.setAttributes({ a: 1, b: 'two' }),
  'another name': (span) => span.updateName('another'),
  'another name, half a pair': (span) => span.updateName('half \udc00'),
  status: (span) => span.setStatus({ code: 2, message: 'no' }),
  event: (span) => span.addEvent('seen', { a: 1 }),
  'a dropped attribute': (span) => span.setAttribute('a', Symbol('a'))
}

/** @param {(trace: RequestContext) => void} work in a request, once for the bytes and once for a processor */
async function children (t, work, headers = {}) {
  const sink = await startSink(t)
  const routes = (app) => app.get('/', async ({ trace }) => { work(trace) })
  const native = await tracedApp(t, { listen: false, trace: { spanProcessors: undefined, exporter: { url: sink.url } }, routes })
  const objects = await tracedApp(t, { listen: false, routes })
  for (const { app } of [native, objects]) for (let again = 0; again < 2; again++) await app.inject({ path: '/', headers })
  await native.app.lightTrace.flush()
  const isChild = ({ kind }) => kind !== 'SERVER' && kind !== 1
  return { written: sink.spans.filter(isChild), seen: (await objects.collector.spans()).filter(isChild), all: sink.spans }
}

for (const [what, doing] of Object.entries(DOINGS)) {
  test(`${what}: children with any name are the same in bytes and as objects`, async (t) => {
    const { written, seen } = await children(t, (trace) => { for (const name of NAMES) trace.withSpan(name, doing) }, { traceparent: TRACEPARENT, tracestate: 'vendor=1' })
    t.equal(written.length, NAMES.length * 2)
    t.strictSame(written.map(fromBytes), seen.map(fromObject))
  })
}

test('the options kind, root, attributes, links and start have their effect', { skip: without('testing') }, async (t) => {
  const OPTIONS = [undefined, null, {}, { kind: 2 }, { kind: 4 }, { kind: 9 }, { root: true }, { attributes: { a: 1 } }, { links: [] }, { startTime: 5 }]
  const { written, seen } = await children(t, (trace) => { for (const options of OPTIONS) trace.withSpan('named', options, noop) })
  t.equal(written.length, OPTIONS.length * 2)
  t.strictSame(written.map(fromBytes), seen.map(fromObject))
})

test('a child of a child has it as its parent, and each has its own id', async (t) => {
  const { written, all } = await children(t, (trace) => trace.withSpan('outer', () => trace.withSpan('inner', noop)))
  const byId = new Map(all.map((span) => [span.spanId, span]))
  t.equal(byId.size, all.length)
  for (const span of written) {
    const parent = byId.get(span.parentSpanId)
    t.equal(parent.name, span.name === 'inner' ? 'outer' : 'GET /')
    t.equal(parent.traceId, span.traceId)
  }
})

test('more names than the cache holds are right', async (t) => {
  const names = Array.from({ length: 1100 }, (_, i) => `name ${i}`)
  const { written } = await children(t, (trace) => { for (const name of names) trace.withSpan(name, noop) })
  t.strictSame(written.map(({ name }) => name), [...names, ...names])
})

test('children of an unsampled request are unsampled', async (t) => {
  const { written, seen, all } = await children(t, (trace) => trace.withSpan('load user', noop), { traceparent: TRACEPARENT.replace(/1$/, '0') })
  t.strictSame([written, seen, all], [[], [], []])
})
