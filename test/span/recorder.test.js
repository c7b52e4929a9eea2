'use strict'

// The option `recorder`: unsampled requests can be exported later, but only once. Also what the recorder must never do.
// Feature: keep

const { test } = require('tap')
const { setImmediate: turn } = require('node:timers/promises')
const { randomBytes } = require('node:crypto')
const { extrapolate } = require('../support/extrapolation')
const { without } = require('../support/features')
const { startSink } = require('../support/otlp-sink')
const { runInChild } = require('../support/child')
const { signal } = require('../support/raw-client')
const { recordedApp, identity } = require('../support/recorded-app')
const { tracedApp } = require('../support/traced-app')

const KEPT = 'light_trace.kept'

test('a kept request has all its children, and none of another request in its trace', async (t) => {
  const { app, sent } = await recordedApp(t, { keep: { errors: true } }, (app) => {
    app.get('/:outcome', async (request, reply) => {
      for (let i = 0; i < 200; i++) await request.trace.withSpan(`outer of ${request.params.outcome}`, () => request.trace.withSpan('inner', async () => {}))
      if (request.params.outcome === 'fails') reply.code(500)
      return ''
    })
  })
  const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02' }
  await Promise.all(['works', 'fails', 'works'].map((outcome) => app.inject({ url: `/${outcome}`, headers })))
  const spans = await sent()
  t.equal(spans.length, 401)
  t.equal(new Set(spans.map(({ spanId }) => spanId)).size, 401, 'each once')
  t.same(tally(spans, ({ name }) => name), { 'GET /:outcome': 1, 'outer of fails': 200, inner: 200 })
  const ids = new Set(spans.map(({ spanId }) => spanId))
  t.ok(spans.every(({ kind, parentSpanId }) => kind === 'SERVER' || ids.has(parentSpanId)), 'their parents are there')
  t.same(tally(spans, ({ traceState, attributes }) => `${traceState} ${attributes[KEPT]}`), { 'ot=th:0 error': 65, ' error': 336 }, 'as many as a sampled request holds represent themselves, the others nothing')
  identity(t, app)
})

test('a flush sends everything of a kept request, without waiting for its turns', async (t) => {
  const { app, sent } = await recordedApp(t, { keep: { errors: true } }, (app) => app.get('/', async ({ trace }, reply) => {
    for (let i = 0; i < 1000; i++) trace.withSpan('child', () => {})
    return reply.code(500).send('')
  }))
  await app.inject('/')
  const flushed = app.lightTrace.flush()
  t.equal(app.lightTrace.stats().spans.accepted, 1001)
  await flushed
  t.equal((await sent()).length, 1001)
  identity(t, app)
})

test('a span that starts under an ended step is a child, too', async (t) => {
  const { app, sent } = await recordedApp(t, { keep: { errors: true } }, (app) => {
    app.get('/', async ({ trace }, reply) => {
      let later
      trace.withSpan('step', () => { later = turn().then(() => trace.withSpan('started under it', () => {})) })
      await later
      return reply.code(500).send('')
    })
  })
  await app.inject('/')
  t.same((await sent()).map(({ name }) => name).sort(), ['GET /', 'started under it', 'step'])
})

test('a Sampler can drop a request and take its children, or the reverse', async (t) => {
  for (const takes of ['GET /', 'child']) {
    const sampler = { shouldSample: (context, traceId, name) => ({ decision: name === takes ? 2 : 0 }), toString: () => takes }
    const { app, sent } = await recordedApp(t, { sampler }, (app) => app.get('/', async ({ trace }) => {
      for (let i = 0; i < 3; i++) trace.withSpan('child', () => {})
      return ''
    }))
    await app.inject('/')
    const spans = await sent()
    t.same(tally(spans, ({ name }) => name), takes === 'child' ? { child: 3 } : { 'GET /': 1 })
    t.ok(spans.every(({ attributes }) => attributes[KEPT] === undefined))
    identity(t, app)
  }
})

test('an attribute that the application has set itself is not duplicated', async (t) => {
  const { app, sent } = await recordedApp(t, { keep: { errors: true } }, (app) => app.get('/', async ({ trace }, reply) => {
    trace.withSpan('mine', (span) => span.setAttributes({ [KEPT]: 'me', 'light_trace.snapshot.reason': 'mine' }))
    trace.withSpan('other', () => {})
    return reply.code(500).send('')
  }))
  await app.inject('/')
  t.same(tally(await sent(), ({ name, attributes }) => `${name} ${attributes[KEPT]}`), { 'GET / error': 1, 'mine me': 1, 'other error': 1 }) // the decoder fails on a repeated key
})

test('request.trace.keep() works with only a recorder, and late children arrive, too', async (t) => {
  const late = signal()
  const done = signal()
  const { app, sent } = await recordedApp(t, {}, (app) => {
    app.get('/', async ({ trace }) => {
      trace.withSpan('early', () => {})
      trace.withSpan('late', () => late.promise).then(done.give)
      trace.keep('big order')
      return ''
    })
    app.get('/fails', async () => { throw new Error('nobody asked for this one') })
  })
  await app.inject('/fails')
  await app.inject('/')
  late.give()
  await done.promise
  const spans = await sent()
  t.same(tally(spans, ({ name, attributes }) => `${name}: ${attributes[KEPT]}`), { 'GET /: big order': 1, 'early: big order': 1, 'late: big order': 1 })
  identity(t, app)
})

test('a snapshot has everything unsent and open once, and no sum can take it for a sample', async (t) => {
  const open = signal()
  const started = signal()
  const { app, sent } = await recordedApp(t, { sampler: 0, keep: { errors: true } }, (app) => {
    app.get('/open', async () => { started.give(); await open.promise; return '' })
    app.get('/fails', async (request, reply) => reply.code(500).send(''))
    app.get('/ok', async ({ trace }) => { trace.withSpan('child', (span) => span.setAttribute('rows', 3)); return '' })
  })
  // The caller's tracestate has a threshold, because it sampled its own span with a different ratio.
  for (let i = 0; i < 10; i++) await app.inject({ url: '/ok', headers: { traceparent: `00-${randomBytes(16).toString('hex')}-b7ad6b7169203331-02`, tracestate: 'vendor=1,ot=th:8;x:y' } })
  for (let i = 0; i < 3; i++) await app.inject('/fails')
  const request = app.inject('/open')
  await started.promise
  const snapshot = app.lightTrace.snapshot({ seconds: 60, reason: 'why not' })
  let isTaken = false
  snapshot.then(() => { isTaken = true })
  for (let i = 0; i < 3; i++) await turn()
  t.notOk(isTaken, 'it waits for open spans')
  open.give()
  await request
  t.same(await snapshot, { spans: 21, missed: 0 })
  const spans = await sent()
  t.same(tally(spans, ({ name, attributes }) => `${name} ${attributes[KEPT]}`), { 'GET /ok snapshot': 10, 'child snapshot': 10, 'GET /open snapshot': 1, 'GET /fails error': 3 })
  const snapped = spans.filter(({ attributes }) => attributes[KEPT] === 'snapshot')
  t.same(tally(snapped, ({ attributes }) => attributes['light_trace.snapshot.reason']), { 'why not': 21 })
  t.same(tally(snapped, ({ traceState }) => traceState), { '': 1, 'ot=x:y,vendor=1': 20 })
  t.equal(snapped.find(({ name }) => name === 'child').attributes.rows, 3)
  t.equal(extrapolate(spans.filter(({ kind, attributes }) => kind === 'SERVER' && attributes[KEPT] !== 'snapshot')).count, 3, 'failed ones are counted')
  t.same(await app.lightTrace.snapshot({ seconds: 60 }), { spans: 0, missed: 0 }, 'another snapshot finds nothing')
  identity(t, app)
})

test('a snapshot reaches back as far as requested', async (t) => {
  const { app, sent } = await recordedApp(t, {}, (app) => app.get('/:when', async () => ''))
  await app.inject('/before')
  while (app.lightTrace.stats().spans.recorded < 1) await turn()
  const between = performance.now()
  while (performance.now() < between + 100) await turn()
  await app.inject('/then')
  t.same(await app.lightTrace.snapshot({ seconds: (performance.now() - between) / 1000 }), { spans: 1, missed: 0 })
  t.same((await sent()).map(({ attributes }) => attributes['url.path']), ['/then'])
  await Promise.all([-1, NaN, '10', Infinity, null].map(async (seconds) => {
    const { app } = await recordedApp(t, {}, (app) => app.get('/', async () => ''))
    await app.inject('/')
    t.same(await app.lightTrace.snapshot({ seconds }), { spans: 1, missed: 0 }, String(seconds))
  }))
})

test('a child that is longer than a part of the ring is cut or left out, and the next one is there', async (t) => {
  const { app, sent } = await recordedApp(t, { recorder: { maxBytes: 64 * 1024 }, limits: { attributeValueLength: 1e6 } }, (app) => app.get('/:length', async ({ trace, params }) => {
    trace.withSpan('child', (span) => span.setAttribute('text', 'x'.repeat(Number(params.length))))
    return ''
  }))
  for (const length of [10, 1_000_000, 10]) await app.inject(`/${length}`)
  await app.lightTrace.snapshot()
  const spans = await sent()
  t.same(spans.filter(({ name }) => name === 'child').map(({ attributes, droppedAttributesCount }) => [attributes.text?.length ?? 0, droppedAttributesCount]), [[10, 0], [0, 1], [10, 0]])
  identity(t, app)
})

test('without a collector, a snapshot drops nothing from the buffer, and reports what it missed', async (t) => {
  const sink = await startSink(t)
  sink.respond = () => ({ status: 503 })
  const { app } = await recordedApp(t, { recorder: { maxBytes: 512 * 1024 }, buffer: { maxBytes: 64 * 1024, flushDelayMs: 10 }, exporter: { url: sink.url } }, (app) => app.get('/', async () => ''))
  for (let i = 0; i < 1500; i++) await app.inject('/')
  const snapshot = app.lightTrace.snapshot({ seconds: 60 })
  // Waits until the buffer has no room for more: between two attempts to send, no span was accepted.
  for (let before = -1; app.lightTrace.stats().spans.accepted > before;) {
    before = app.lightTrace.stats().spans.accepted
    const refused = sink.requests.length
    await sink.waitFor(({ requests }) => requests.length > refused)
  }
  for (let i = 0; i < 1500; i++) await app.inject('/')
  await app.close()
  const { spans, missed } = await snapshot
  t.ok(spans < 200, `${spans} are in the buffer`)
  t.ok(missed > 1000, `${missed} missed`)
  const { dropped, thinned, accepted } = app.lightTrace.stats().spans
  t.same([dropped.queue_full, thinned, accepted], [undefined, 0, spans])
  identity(t, app)
})

test('a flood of snapshots is one, and a flood of failures is kept up to its rate', async (t) => {
  const { app, sent } = await recordedApp(t, { keep: { errors: true, maxPerSecond: 5 } }, (app) => app.get('/', async ({ trace }, reply) => {
    trace.withSpan('child', () => {})
    return reply.code(500).send('')
  }))
  for (let i = 0; i < 500; i++) await app.inject('/')
  const { notKept } = app.lightTrace.stats().spans
  t.ok(notKept > 400, `${notKept} not kept`)
  const all = await Promise.all(Array.from({ length: 1000 }, () => app.lightTrace.snapshot({ seconds: 60 })))
  t.equal(new Set(all).size, 1)
  t.equal(all[0].spans, notKept * 2)
  t.equal((await sent()).length, 1000)
  identity(t, app)
})

test('a snapshot can be taken even if nothing may be kept', async (t) => {
  const { app, sent } = await recordedApp(t, { keep: { errors: true, maxPerSecond: 0 } }, (app) => app.get('/', async ({ trace }, reply) => {
    trace.keep()
    return reply.code(500).send('')
  }))
  for (let i = 0; i < 20; i++) await app.inject('/')
  t.equal(app.lightTrace.stats().spans.accepted, 0)
  t.same(await app.lightTrace.snapshot(), { spans: 20, missed: 0 })
  t.equal((await sent()).length, 20)
})

test('server errors trigger a snapshot, and the next one has to wait', async (t) => {
  const { app, sent } = await recordedApp(t, { recorder: { errorsPerSecond: 5 } }, (app) => {
    app.get('/fails', async (request, reply) => reply.code(500).send(''))
    app.get('/ok', async () => '')
  })
  await app.inject('/ok')
  for (let i = 0; i < 4; i++) await app.inject('/fails')
  await app.lightTrace.flush()
  t.equal(app.lightTrace.stats().spans.accepted, 0, 'four are too few')
  for (let i = 0; i < 20; i++) await app.inject('/fails')
  t.ok((await app.lightTrace.snapshot()).spans > 0, 'it joins the running one')
  t.same(tally(await sent(), ({ attributes }) => attributes['light_trace.snapshot.reason']), { 'server errors': 25 })
  for (let i = 0; i < 20; i++) await app.inject('/fails')
  // If the errors had started a second snapshot, this one would join it.
  t.same(await app.lightTrace.snapshot({ reason: 'asked for' }), { spans: 20, missed: 0 })
  t.same(tally(await sent(), ({ attributes }) => attributes['light_trace.snapshot.reason']), { 'server errors': 25, 'asked for': 20 }, 'no second one')
})

test('close with a full ring sends nothing of it, and later requests are not recorded', async (t) => {
  const { app, sink } = await recordedApp(t, {}, (app) => app.get('/', async () => ''))
  const { lightTrace } = app
  for (let i = 0; i < 100; i++) await app.inject('/')
  const snapshot = lightTrace.snapshot({ seconds: 0 })
  await app.close()
  t.same(await snapshot, { spans: 0, missed: 0 })
  t.same(await lightTrace.snapshot(), { spans: 0, missed: 0 })
  const { spans, recorder } = lightTrace.stats()
  t.same([spans.recorded, spans.unsampled, spans.accepted, recorder.bytes], [0, 100, 0, 0])
  t.equal(sink.requests.length, 0, 'no byte went to the collector')
})

test('close sends late children of a kept request', async (t) => {
  const { app, sink } = await recordedApp(t, { keep: { errors: true } }, (app) => app.get('/', async ({ trace }, reply) => {
    for (let i = 0; i < 1000; i++) trace.withSpan('child', () => {})
    return reply.code(500).send('')
  }))
  await app.inject('/')
  await app.close()
  t.equal(sink.spans.length, 1001)
})

test('without a recorder or a collector, a snapshot is empty and a line gives the reason', async (t) => {
  for (const trace of [{ spanProcessors: undefined, exporter: 'none' }, ...(without('sdk') ? [] : [{ recorder: true }]), { recorder: true, spanProcessors: undefined, exporter: 'none' }]) {
    const codes = []
    let started = 0
    const seen = { onStart () { started++ }, onEnd () {}, forceFlush: async () => {}, shutdown: async () => {} }
    const { app } = await tracedApp(t, {
      listen: false,
      trace: { spanProcessors: [seen], sampler: 0, ...trace },
      fastify: { logger: { level: 'warn', stream: { write: (line) => codes.push(JSON.parse(line).code) } } },
      routes: (app) => app.get('/', async () => '')
    })
    t.equal((await app.inject('/')).statusCode, 200)
    t.same(await app.lightTrace.snapshot(), { spans: 0, missed: 0 })
    t.same(await app.lightTrace.snapshot(null), { spans: 0, missed: 0 })
    t.same(codes, ['LT_WARN_RECORDER'])
    t.notOk('recorder' in app.lightTrace.stats())
    t.equal(started, 0, 'and nothing is recorded')
  }
})

test('two applications have one ring each', async (t) => {
  const [a, b] = await Promise.all([1, 2].map(() => recordedApp(t, {}, (app) => app.get('/', async () => ''))))
  await a.app.inject('/')
  await b.app.inject('/')
  t.same(await a.app.lightTrace.snapshot(), { spans: 1, missed: 0 })
  t.same([a.app, b.app].map((app) => app.lightTrace.stats().spans.recorded), [0, 1])
  t.same([(await a.sent()).length, (await b.sent()).length], [1, 0])
})

test('a snapshot that is not awaited keeps no process alive', async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify()
    await app.register(lightTrace, { sampler: 0, recorder: { errorsPerSecond: 5 }, exporter: { url: 'http://127.0.0.1:9/v1/traces' } })
    app.get('/', async (request, reply) => reply.code(500).send(''))
    for (let i = 0; i < 10; i++) await app.inject('/')
  }, { killAfterMs: 25_000 })
  t.equal((await child.exit).code, 0, 'the snapshot gives up after 30 s, and the child is killed before')
})

for (const end of ['exit', 'SIGTERM']) {
  test(`a process that ends by ${end} with a full ring does not wait for it`, async (t) => {
    const sink = await startSink(t)
    const child = runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
      const app = Fastify()
      await app.register(lightTrace, { sampler: 0, recorder: true, exporter: { url }, closeTimeoutMs: 600_000 })
      app.get('/', async () => '')
      for (let i = 0; i < 100; i++) await app.inject('/')
      say(app.lightTrace.stats().spans.recorded)
      if (!url.endsWith('?exit')) setInterval(() => {}, 1000)
    }, { args: [`${sink.url}?${end}`] })
    t.equal(await child.said(), 100)
    if (end === 'SIGTERM') child.kill('SIGTERM')
    const { code, signal, stderr } = await child.exit
    t.same([code, signal, stderr], end === 'exit' ? [0, null, ''] : [null, 'SIGTERM', ''])
    t.equal(sink.requests.length, 0)
  })
}

function tally (list, keyOf) {
  const counts = {}
  for (const one of list) counts[keyOf(one)] = (counts[keyOf(one)] ?? 0) + 1
  return counts
}
