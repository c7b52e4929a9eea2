'use strict'

// Our own requests are never traced, by any instrumentation.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { freePort } = require('../../scripts/free-port')
const { startSink } = require('../support/otlp-sink')
const { decodeSpans } = require('../support/otlp-decode')
const { without } = require('../support/features')

async function settled (app) {
  await new Promise((resolve) => setImmediate(resolve))
  await app.lightTrace.flush()
}

// A06
test('with traced outbound calls, idling and flushing create no span', async (t) => {
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url }, buffer: { flushDelayMs: 5 } })
  app.get('/', async () => 'ok')
  for (let i = 0; i < 10; i++) {
    await app.inject('/')
    await settled(app)
  }
  await app.inject('/')
  await sink.waitFor(11) // sent by the timer that a request has started
  await settled(app)
  t.equal(app.lightTrace.stats().spans.started, 11)
  t.strictSame(new Set(sink.spans.map(({ kind }) => kind)), new Set(['SERVER']))
})

// P10
test('an app that is its own collector does not trace its exports in a loop', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const received = []
  app.addContentTypeParser('application/x-protobuf', { parseAs: 'buffer' }, (request, body, done) => done(null, body))
  app.post('/v1/traces', async (request) => {
    received.push(...decodeSpans(request.body))
    return ''
  })
  app.get('/', async () => 'ok')
  const options = { buffer: { flushDelayMs: 5 } }
  // The port is unknown before the app listens, and the options are not read again after registration.
  const port = await freePort()
  await app.register(lightTrace, { exporter: { url: `http://127.0.0.1:${port}/v1/traces` }, ...options })
  await app.listen({ port, host: '127.0.0.1' })
  for (let i = 0; i < 5; i++) {
    await (await fetch(`http://127.0.0.1:${port}/`)).text()
    await settled(app)
  }
  await settled(app)
  const { accepted, delivered } = app.lightTrace.stats().spans
  t.equal(delivered, accepted)
  t.equal(received.filter(({ kind }) => kind === 'SERVER').length, 5)
  t.strictSame(received.filter(({ attributes }) => attributes['url.path'] === '/v1/traces'), [])
})

// An app that is the collector of another app in the same process, which has sent it the span of one request.
async function gatewayThatGotASpan (t, options, answer) {
  const sink = await startSink(t)
  const gateway = Fastify()
  t.teardown(() => gateway.close())
  await gateway.register(lightTrace, { exporter: { url: sink.url }, ...options })
  gateway.addContentTypeParser('application/x-protobuf', { parseAs: 'buffer' }, (request, body, done) => done(null, body))
  gateway.post('/v1/traces', async (request, reply) => reply.code(answer).send(''))
  const url = `${await gateway.listen({ port: 0, host: '127.0.0.1' })}/v1/traces`

  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url } })
  await app.inject('/')
  await settled(app)
  const { ok, failed } = app.lightTrace.stats().exports
  t.equal(ok + failed, 1)
  return { url, spans: () => gateway.lightTrace.stats().spans }
}

test('a second app in the process that is the first one\'s collector creates no span for the exports', async (t) => {
  const { spans } = await gatewayThatGotASpan(t, {}, 200)
  t.match(spans(), { started: 1, accepted: 0, unsampled: 1 })
})

const suspicious = {
  'trusts no caller': { trustIncoming: false },
  'asks about each caller': { trustIncoming: () => false },
  'keeps failed and slow requests': { keep: { errors: true, slow: true }, slow: { afterMs: 0 }, sampler: 'always_off' },
  'shows its spans to processors': { spanProcessors: [{ onStart () {}, onEnd () {} }], trustIncoming: false },
  'samples by an object': { sampler: { shouldSample: () => ({ decision: 2 }), toString: () => 'all' }, trustIncoming: false }
}
for (const [what, options] of Object.entries(suspicious)) {
  test(`an app that ${what} creates no span for exports of its own process`, { skip: options.keep !== undefined && without('keep') }, async (t) => {
    const { url, spans } = await gatewayThatGotASpan(t, options, 400)
    t.equal(spans().accepted, 0)
    // A foreign client that sends the same flags is traced.
    await fetch(url, { method: 'POST', headers: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00` } })
    while (spans().ended < 1) await new Promise((resolve) => setImmediate(resolve))
    t.equal(spans().accepted, 1)
  })
}
