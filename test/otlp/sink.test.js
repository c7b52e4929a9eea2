'use strict'

const { test } = require('tap')
const { gzipSync } = require('node:zlib')
const { startSink } = require('../support/otlp-sink')
const { encodeRequest, requestOf } = require('../support/otlp-encode')

const post = (sink, body, headers) => fetch(sink.url, {
  method: 'POST', body, headers: { 'content-type': 'application/x-protobuf', connection: 'close', ...headers }
})

test('the sink keeps what it receives, and wakes waiting tests', async (t) => {
  const sink = await startSink(t)
  const arrived = sink.waitFor(3)
  const body = encodeRequest(requestOf({ name: 'a' }, { name: 'b' }))
  const zipped = gzipSync(encodeRequest(requestOf({ name: 'c' })))
  t.equal((await post(sink, body, { 'x-tenant': 'acme' })).status, 200)
  t.equal((await post(sink, zipped, { 'content-encoding': 'gzip' })).status, 200)

  t.same((await arrived).map((span) => span.name), ['a', 'b', 'c'])
  t.match(sink.requests, [
    { method: 'POST', url: '/v1/traces', headers: { 'x-tenant': 'acme' }, bytes: body.length, status: 200 },
    { headers: { 'content-encoding': 'gzip' }, bytes: zipped.length, spans: [{ name: 'c' }] }
  ])
  t.equal(await sink.waitFor(({ requests }) => requests.length === 2), sink.spans, 'present spans are not waited for')
})

test('answers can be scripted, and only accepted spans count as received', async (t) => {
  const sink = await startSink(t)
  let turn = 0
  sink.respond = async () => ++turn === 1
    ? { status: 503, headers: { 'retry-after': '1' }, body: 'later' }
    : { status: 202 }
  const refused = await post(sink, encodeRequest(requestOf({ name: 'a' })))
  t.match([refused.status, refused.headers.get('retry-after'), await refused.text()], [503, '1', 'later'])
  t.same(sink.spans, [])
  t.match(sink.requests, [{ status: 503, spans: [{ name: 'a' }] }])
  t.equal((await post(sink, encodeRequest(requestOf({ name: 'a' })))).status, 202)
  t.match(await sink.waitFor(1), [{ name: 'a' }])
})

test('a failed wait reports its reason', async (t) => {
  const sink = await startSink(t)
  await t.rejects(sink.waitFor(1, 1), { message: /^1 ms went by: 0 spans in 0 requests came, waited for 1$/ })

  const waiting = t.rejects(sink.waitFor(1), { message: /^OTLP: unknown field/ })
  t.equal((await post(sink, 'not OTLP')).status, 400)
  await waiting
  await t.rejects(sink.waitFor(0), { message: /^OTLP: unknown field/ }, 'a sink that received invalid data fails every later wait')
})

test('closing ends pending waits and open connections', async (t) => {
  const sink = await startSink()
  const never = t.rejects(sink.waitFor(1), { message: 'the sink was closed' })
  const seen = new Promise((resolve) => {
    sink.respond = () => { resolve(); return new Promise(() => {}) }
  })
  const hanging = t.rejects(post(sink, encodeRequest(requestOf({}))))
  await seen
  await sink.close()
  await hanging
  await never
  await sink.close()
})

test('requests that are not OTLP/HTTP are rejected', async (t) => {
  const sink = await startSink(t)
  const body = encodeRequest(requestOf({}))
  t.equal((await fetch(sink.url, { headers: { connection: 'close' } })).status, 404)
  t.equal((await fetch(sink.url.replace('traces', 'metrics'), { method: 'POST', body, headers: { connection: 'close' } })).status, 404)
  t.equal((await post(sink, body, { 'content-type': 'application/json' })).status, 415)
  t.equal((await post(sink, body, { 'content-encoding': 'br' })).status, 415)
  t.same(sink.spans, [])
})
