'use strict'

// Our own requests are never traced, whoever looks.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startSink } = require('../support/otlp-sink')
const { decodeSpans } = require('../support/otlp-decode')

async function settled (app) {
  await new Promise((resolve) => setImmediate(resolve))
  await app.lightTrace.flush()
}

// A06
test('with outbound calls traced, idling and flushing makes no span', async (t) => {
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
  await sink.waitFor(11) // sent by the timer, which a request armed
  await settled(app)
  t.equal(app.lightTrace.stats().spans.started, 11)
  t.strictSame(new Set(sink.spans.map(({ kind }) => kind)), new Set(['SERVER']))
})

// P10
test('an app that is its own collector does not trace itself into a loop', async (t) => {
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
  // The port is not known before it listens, and the options are not read after it was registered.
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

test('a second app in the process that collects for the first one makes no span of it', async (t) => {
  const sink = await startSink(t)
  const gateway = Fastify()
  t.teardown(() => gateway.close())
  await gateway.register(lightTrace, { exporter: { url: sink.url } })
  gateway.addContentTypeParser('application/x-protobuf', { parseAs: 'buffer' }, (request, body, done) => done(null, body))
  gateway.post('/v1/traces', async () => '')
  const origin = await gateway.listen({ port: 0, host: '127.0.0.1' })

  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: `${origin}/v1/traces` } })
  await app.inject('/')
  await settled(app)
  t.equal(app.lightTrace.stats().spans.delivered, 1)
  const { started, accepted, unsampled } = gateway.lightTrace.stats().spans
  t.strictSame({ started, accepted, unsampled }, { started: 1, accepted: 0, unsampled: 1 })
})

const suspicious = {
  'trusts no caller': { trustIncoming: false },
  'asks about each caller': { trustIncoming: () => false },
  'keeps failed and slow requests': { keep: { errors: true, slowerThanMs: 0 }, sampler: 'always_off' },
  'shows its spans to processors': { spanProcessors: [{ onStart () {}, onEnd () {} }], trustIncoming: false },
  'samples by an object': { sampler: { shouldSample: () => ({ decision: 2 }), toString: () => 'all' }, trustIncoming: false }
}
for (const [what, options] of Object.entries(suspicious)) {
  test(`an app that ${what} makes no span of the spans that its own process sends it`, async (t) => {
    const sink = await startSink(t)
    const gateway = Fastify()
    t.teardown(() => gateway.close())
    await gateway.register(lightTrace, { exporter: { url: sink.url }, ...options })
    gateway.addContentTypeParser('application/x-protobuf', { parseAs: 'buffer' }, (request, body, done) => done(null, body))
    let posted = 0
    gateway.post('/v1/traces', async (request, reply) => {
      posted++
      return reply.code(400).send('')
    })
    const origin = await gateway.listen({ port: 0, host: '127.0.0.1' })
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(lightTrace, { exporter: { url: `${origin}/v1/traces` } })
    await app.inject('/')
    await settled(app)
    t.equal(posted, 1)
    t.equal(gateway.lightTrace.stats().spans.accepted, 0)
    // A stranger who sends the same flags is no part of that.
    await fetch(`${origin}/v1/traces`, { method: 'POST', headers: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00` } })
    while (gateway.lightTrace.stats().spans.ended < 1) await new Promise((resolve) => setImmediate(resolve))
    t.equal(gateway.lightTrace.stats().spans.accepted, 1)
  })
}

async function freePort () {
  const server = require('node:net').createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}
