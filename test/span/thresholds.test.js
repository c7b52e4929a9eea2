'use strict'

// What samplers write into the tracestate: in headers, in spans, and in the exported bytes.

const { test } = require('tap')
const { trace, ROOT_CONTEXT } = require('@opentelemetry/api')
const { without } = require('../support/features')
const { startSink } = require('../support/otlp-sink')
const { probabilityOf } = require('../support/extrapolation')
const { tracedApp } = require('../support/traced-app')

const TENTH = 'ot=th:e6666666666666'
const TAKEN = '0af7651916cd43dd00ffffffffffffff' // sampled by every ratio above 0
const LEFT = '0af7651916cd43dd0000000000000000' // not sampled by any ratio below 1
const caller = (traceId, flags = '01') => `00-${traceId}-b7ad6b7169203331-${flags}`

// Sends enough root requests that a ratio of one half samples some and leaves some, except once in 2^32 times.
async function both (app, url = '/') {
  const answers = []
  for (let i = 0; i < 32; i++) answers.push((await app.inject(url)).json())
  return { taken: answers.filter(({ headers }) => headers.traceparent.endsWith('3')), left: answers.filter(({ headers }) => headers.traceparent.endsWith('2')) }
}

const echo = (app) => {
  app.get('/', async (request) => ({ headers: request.trace.inject(), child: await request.trace.withSpan('child', () => request.trace.inject()) }))
  app.get('/fails', async (request, reply) => reply.code(500).send({ headers: request.trace.inject() }))
}

test('a ratio writes its threshold into traces that start here and are sampled, and into no others', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { sampler: 0.5 }, routes: echo })
  const { taken, left } = await both(app)
  t.ok(taken.length > 0 && left.length > 0)
  for (const { headers, child } of taken) t.same([headers.tracestate, child.tracestate], ['ot=th:8', 'ot=th:8'])
  for (const { headers, child } of left) t.same([headers.tracestate, child.tracestate], [undefined, undefined])
  const spans = await collector.spans()
  t.equal(spans.length, taken.length * 2)
  t.ok(spans.every(({ traceState }) => traceState === 'ot=th:8'), 'children too')
})

test('the threshold has every digit', async (t) => {
  for (const [sampler, tracestate] of [[0.1, TENTH], [0.25, 'ot=th:c'], [0.01, 'ot=th:fd70a3d70a3d71'], [0.75, 'ot=th:4']]) {
    const { app, collector } = await tracedApp(t, { listen: false, trace: { sampler: 'always_off' }, routes: (app) => app.get('/', { config: { trace: { sampler } } }, async () => 'ok') })
    for (let i = 0; (await collector.spans()).length === 0 && i < 5000; i++) await app.inject('/')
    const [span] = await collector.spans()
    t.equal(span.traceState, tracestate, 'of a route\'s own ratio, too')
    t.ok(Math.abs(probabilityOf(span.traceState) - sampler) < 1e-12)
  }
})

test('always_on and a ratio of 1 write no threshold', async (t) => {
  for (const sampler of ['always_on', 1]) {
    const { app, collector } = await tracedApp(t, { listen: false, trace: { sampler }, routes: echo })
    t.equal((await app.inject('/')).json().headers.tracestate, undefined)
    for (const { traceState } of await collector.spans()) t.equal(traceState, '')
  }
})

test('a caller\'s trace state is passed on unchanged if the caller decides', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { sampler: 0.1 }, routes: echo })
  for (const tracestate of ['ot=th:8;rv:8e6d1a75832a2f,a=1', 'a=1', 'ot=th:0', 'ot=nonsense']) {
    const { headers } = (await app.inject({ url: '/', headers: { traceparent: caller(LEFT), tracestate } })).json()
    t.equal(headers.tracestate, tracestate)
  }
  t.equal((await app.inject({ url: '/', headers: { traceparent: caller(LEFT) } })).json().headers.tracestate, undefined)
  t.same([...new Set((await collector.spans()).map(({ traceState }) => traceState))], ['ot=th:8;rv:8e6d1a75832a2f,a=1', 'a=1', 'ot=th:0', 'ot=nonsense', ''])
})

test('a threshold that contradicts the caller\'s own decision is removed, and nothing else', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, routes: echo })
  for (const [flags, tracestate, written] of [
    ['01', 'ot=th:fffffffffffff8', undefined], ['01', 'a=1,ot=th:fffffffffffff8;x:y', 'ot=x:y,a=1'],
    ['01', 'ot=th:8;rv:7fffffffffffff', 'ot=rv:7fffffffffffff'], ['01', 'ot=th:8;rv:80000000000000', 'ot=th:8;rv:80000000000000'],
    ['00', 'ot=th:0', undefined], ['00', 'ot=th:8;rv:7fffffffffffff', 'ot=th:8;rv:7fffffffffffff']
  ]) {
    const { headers } = (await app.inject({ url: '/', headers: { traceparent: caller(LEFT, flags), tracestate } })).json()
    t.equal(headers.tracestate, written, `${flags} ${tracestate}`)
  }
  t.notMatch((await collector.spans()).map(({ traceState }) => traceState).join(), 'ffff8')
})

// Other readers accept capital letters as hex digits, and use the last of two values.
test('an ambiguous threshold of a caller is removed, and nothing else', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, routes: echo })
  for (const [tracestate, written] of [
    ['ot=th:0;th:fffffffffffff8', undefined], ['ot=th:0;x:y;th:fffffffffffff8,a=1', 'ot=x:y,a=1'],
    ['ot=th:FFFFFFFFFFFFF8', undefined], ['ot=th:fffffffffffffff8', undefined], ['a=1,ot=th:;x:y', 'ot=x:y,a=1']
  ]) {
    const { headers } = (await app.inject({ url: '/', headers: { traceparent: caller(TAKEN, '01'), tracestate } })).json()
    t.equal(headers.tracestate, written, tracestate)
  }
  t.notMatch((await collector.spans()).map(({ traceState }) => traceState).join(), /th:/)
})

test('a ratio that ignores the parent replaces the caller\'s threshold, and uses the caller\'s randomness', async (t) => {
  process.env.OTEL_TRACES_SAMPLER = 'traceidratio'
  process.env.OTEL_TRACES_SAMPLER_ARG = '0.5'
  t.teardown(() => { delete process.env.OTEL_TRACES_SAMPLER; delete process.env.OTEL_TRACES_SAMPLER_ARG })
  const { app } = await tracedApp(t, { listen: false, routes: echo })
  for (const [traceId, tracestate, written] of [
    [TAKEN, undefined, 'ot=th:8'], [TAKEN, 'ot=th:c,a=1', 'ot=th:8,a=1'], [TAKEN, 'a=1,ot=x:y;th:0', 'ot=th:8;x:y,a=1'],
    [LEFT, undefined, undefined], [LEFT, 'a=1,ot=th:0', 'a=1'], [LEFT, 'ot=th:0;x:y', 'ot=x:y'],
    [LEFT, 'ot=rv:80000000000000', 'ot=th:8;rv:80000000000000'], [TAKEN, 'ot=rv:7fffffffffffff', 'ot=rv:7fffffffffffff'],
    [TAKEN, 'ot=rv:7', 'ot=th:8;rv:7'] // invalid randomness, so that of the trace id is used
  ]) {
    const headers = { traceparent: caller(traceId), ...tracestate === undefined ? {} : { tracestate } }
    const answer = (await app.inject({ url: '/', headers })).json()
    t.equal(answer.headers.tracestate, written, `${traceId} ${tracestate}`)
    t.equal(answer.headers.traceparent.endsWith('1'), written?.includes('th:') ?? false)
  }
})

test('always_on that ignores the parent removes the caller\'s threshold', async (t) => {
  process.env.OTEL_TRACES_SAMPLER = 'always_on'
  t.teardown(() => { delete process.env.OTEL_TRACES_SAMPLER })
  const { app } = await tracedApp(t, { listen: false, routes: echo })
  for (const [tracestate, written] of [['ot=th:c,a=1', 'ot=th:0,a=1'], ['a=1', 'a=1'], ['ot=rv:80000000000000', 'ot=rv:80000000000000']]) {
    t.equal((await app.inject({ url: '/', headers: { traceparent: caller(LEFT, '00'), tracestate } })).json().headers.tracestate, written)
  }
})

test('keep.errors: a failed request and its children have the threshold 0, sampled or kept, and headers do not', { skip: without('keep') }, async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { sampler: 0.5, keep: { errors: true } },
    routes: (app) => {
      echo(app)
      app.get('/fails-late', async (request, reply) => {
        await request.trace.withSpan('child', () => {})
        return reply.code(503).send({ headers: request.trace.inject() })
      })
    }
  })
  await both(app)
  t.ok((await collector.spans()).every(({ traceState }) => traceState === 'ot=th:8'), 'other spans have the ratio\'s')
  collector.reset()
  const { taken, left } = await both(app, '/fails-late')
  for (const { headers } of taken) t.equal(headers.tracestate, 'ot=th:8')
  for (const { headers } of left) t.equal(headers.tracestate, undefined)
  const spans = await collector.spans()
  const of = (kind, isKept) => spans.filter((span) => span.kind === kind && ('light_trace.kept' in span.attributes) === isKept)
  t.equal(of('SERVER', true).length, left.length)
  t.equal(of('SERVER', false).length, taken.length)
  t.ok(spans.filter(({ kind }) => kind === 'SERVER').every(({ traceState }) => traceState === 'ot=th:0'))
  t.same([of('INTERNAL', true).length, of('INTERNAL', false).length], [left.length, taken.length])
  t.ok(spans.filter(({ kind }) => kind === 'INTERNAL').every(({ traceState }) => traceState === 'ot=th:0'))
})

test('keep with a caller changes only the threshold of the exported span', { skip: without('keep') }, async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { keep: { errors: true } }, routes: echo })
  for (const [flags, randomness] of [['01', 'e0000000000000'], ['00', '80000000000000']]) {
    collector.reset()
    const tracestate = `a=1,ot=rv:${randomness};th:c`
    const { headers } = (await app.inject({ url: '/fails', headers: { traceparent: caller(LEFT, flags), tracestate } })).json()
    t.equal(headers.tracestate, tracestate)
    const [span] = await collector.spans()
    t.equal(span.traceState, `ot=th:0;rv:${randomness},a=1`)
  }
})

test('children beyond the 64th are exported if the sampler took their request, with its threshold', { skip: without('keep') }, async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { sampler: 0.5, keep: { errors: true } },
    routes: (app) => app.get('/', async (request, reply) => {
      for (let i = 1; i <= 65; i++) request.trace.withSpan(`child ${i}`, () => {})
      return reply.code(500).send({ headers: request.trace.inject() })
    })
  })
  const { taken, left } = await both(app)
  const of = (name) => collector.spans().then((spans) => spans.filter((span) => span.name === name).map(({ traceState }) => traceState))
  for (const name of ['GET /', 'child 1', 'child 64']) t.same(await of(name), Array(taken.length + left.length).fill('ot=th:0'), name)
  t.same(await of('child 65'), Array(taken.length).fill('ot=th:8'))
})

test('work after a failed request belongs to it in the export', { skip: without('keep') }, async (t) => {
  let late
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { sampler: 0.5, keep: { errors: true } },
    routes: (app) => app.get('/', async (request, reply) => {
      const { tracer } = app.lightTrace
      late = () => {
        tracer.startSpan('late', {}, trace.setSpan(ROOT_CONTEXT, request.trace.span)).end()
        return request.trace.inject()
      }
      return reply.code(500).send('')
    })
  })
  let headers
  for (let i = 0; headers?.tracestate === undefined && i < 100; i++) {
    collector.reset()
    await app.inject('/')
    await collector.spans()
    headers = late()
  }
  t.equal(headers.tracestate, 'ot=th:8')
  const [server, child] = await collector.spans()
  t.same([server.traceState, child.traceState], ['ot=th:0', 'ot=th:0'])
})

test('keep.slow: a slow request has the threshold 0, too', { skip: without('keep') }, async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false, trace: { sampler: 0.5, keep: { slow: true }, slow: { afterMs: 0 } }, routes: (app) => app.get('/', async () => ({}))
  })
  for (let i = 0; i < 8; i++) await app.inject('/')
  const spans = await collector.spans()
  t.equal(spans.length, 8)
  t.ok(spans.every(({ traceState }) => traceState === 'ot=th:0'))
})

test('while maxSampledPerSecond drops, neither sampled nor dropped requests have a threshold', async (t) => {
  for (const keep of [undefined, { errors: true }]) { // both ways to start a span
    const { app, collector } = await tracedApp(t, { listen: false, trace: { limits: { sampledPerSecond: 3 }, keep }, routes: echo })
    const answers = []
    for (let i = 0; i < 40; i++) answers.push((await app.inject({ url: '/', headers: { traceparent: caller(TAKEN), tracestate: 'ot=th:c,a=1' } })).json())
    const dropped = answers.filter(({ headers }) => headers.traceparent.endsWith('0'))
    t.ok(dropped.length > 0)
    for (const { headers } of dropped) t.equal(headers.tracestate, 'a=1')
    const servers = (await collector.spans()).filter(({ kind }) => kind === 'SERVER')
    t.same(servers.slice(0, 3).map(({ traceState }) => traceState), new Array(3).fill('ot=th:c,a=1'), 'nothing was dropped yet')
  }
})

test('with a rate, each request has the current threshold of its route', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { sampler: { perSecond: 20 } }, routes: echo })
  t.equal((await app.inject('/fails')).json().headers.tracestate, 'ot=th:0', 'the first of its route')
  const answers = []
  for (let i = 0; i < 3000; i++) answers.push((await app.inject('/')).json().headers)
  const taken = answers.filter(({ traceparent }) => traceparent.endsWith('3'))
  t.ok(taken.length > 0 && taken.length < 1000, `${taken.length} of 3,000`)
  t.same(answers.filter(({ tracestate }) => tracestate !== undefined), taken)
  const spans = await collector.spans()
  t.ok(spans.every(({ traceState }) => /^ot=th:[0-9a-f]{1,6}$/.test(traceState)))
  await app.lightTrace.tracer.startSpan('job').end()
  t.equal((await collector.spans()).at(-1).traceState, 'ot=th:0', 'work outside of a request')
})

test('the bytes have the same threshold, with and without the template', { skip: without('keep') }, async (t) => {
  const sink = await startSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { sampler: 0.5, keep: { errors: true }, spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => {
      echo(app)
      app.get('/own', async (request) => { request.trace.span.setAttribute('http.route', '/mine'); return {} })
      app.get('/with/:id', async () => ({}))
    }
  })
  for (let i = 0; i < 32; i++) for (const url of ['/', '/own', '/with/1', '/fails']) await app.inject(url)
  await app.inject({ url: '/with/2', headers: { traceparent: caller(TAKEN), tracestate: 'a=1' } })
  await app.inject({ url: '/with/2', headers: { traceparent: caller(TAKEN) } })
  await app.lightTrace.flush()
  const byName = new Map()
  for (const { name, kind, traceState, attributes } of sink.spans) {
    const key = `${kind} ${name} ${attributes['light_trace.kept'] ?? ''}`
    byName.set(key, [...new Set([...byName.get(key) ?? [], traceState])].sort())
  }
  t.same(Object.fromEntries(byName), {
    'SERVER GET / ': ['ot=th:8'],
    'INTERNAL child ': ['ot=th:8'],
    'SERVER GET /own ': ['ot=th:8'],
    'SERVER GET /with/:id ': ['', 'a=1', 'ot=th:8'],
    'SERVER GET /fails ': ['ot=th:0'],
    'SERVER GET /fails error': ['ot=th:0']
  })
})

test('a span that the application has marked as kept has the key once', { skip: without('keep') }, async (t) => {
  const sink = await startSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { sampler: 'always_off', keep: { errors: true }, spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/', async (request, reply) => {
      request.trace.span.setAttribute('light_trace.kept', 'by hand')
      return reply.code(500).send('no')
    })
  })
  await app.inject('/')
  await app.lightTrace.flush()
  const [{ attributes }] = await sink.waitFor(1)
  t.equal(attributes['light_trace.kept'], 'error') // the sink's decoder fails on a repeated key
})
