'use strict'

// What must hold with every pair of API and SDK: the same requests give the same tree of spans, with any provider and any way of export.
// contract.test.js runs it with the packages of this repository, test/fixtures/api-* with the pairs that users have.

const assert = require('node:assert/strict')
const { startSink } = require('../support/otlp-sink')

const CALLER = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=b' }

// The requests that are made in each mode, and the resulting spans.
const TREE = [
  'SERVER GET /users/:id [http.route=/users/:id url.path=/users/7 url.query=a=1 http.response.status_code=200] under b7ad6b7169203331',
  '  INTERNAL by hand []',
  '    CLIENT by api [rpc.system=x]',
  '  INTERNAL after a timer []',
  'SERVER GET /fail [http.route=/fail url.path=/fail http.response.status_code=500 error.type=TypeError] ERROR exception=TypeError',
  '  INTERNAL failing [error.type=TypeError] ERROR exception=TypeError',
  'SERVER GET [url.path=/nowhere http.response.status_code=404]',
  'SERVER GET /named [http.route=/named url.path=/named mine=1 http.response.status_code=200]',
  'SERVER GET /bad [http.route=/bad url.path=/bad http.response.status_code=400 error.type=Error] exception=Error'
]

module.exports = { contract }

/**
 * @param {(name: string, fn: (t: { after (fn) }) => Promise<void>) => void} test
 * @param {object} kit the packages of one pair
 */
function contract (test, kit) {
  const { api, lightTrace, Fastify } = kit
  const early = api.trace.getTracer('early')
  const viaProcessors = inMemory(kit, (processor) => ({ spanProcessors: [processor] }))

  for (const [name, mode] of Object.entries(modes(kit))) {
    test(`the spans form the same tree: ${name}`, async (t) => {
      const { app, spans } = await start(t, mode)
      await requests(app)
      assert.deepEqual(traces(draw(await spans(TREE.length))), traces(TREE))
    })

    test(`the active span is the request's wherever the request's context is: ${name}`, async (t) => {
      const { app } = await start(t, mode)
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      const seen = await (await fetch(`${origin}/where`, { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } })).json()
      assert.deepEqual(seen, ['preParsing', 'preValidation', 'preHandler', 'handler', 'awaited', 'timer', 'child', 'after child'].map((place) => `${place} true true`))
      assert.deepEqual(await app.late, ['onSend true true', 'onResponse true true'])
      assert.equal(lightTrace.current(), undefined)
    })

    test(`concurrent requests do not see each other: ${name}`, async (t) => {
      const { app } = await start(t, mode)
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      const ids = await Promise.all(Array.from({ length: 50 }, async (_, i) => {
        const traceId = i.toString(16).padStart(32, 'a')
        const response = await fetch(`${origin}/ids`, { headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } })
        return [traceId, await response.json()]
      }))
      for (const [traceId, seen] of ids) assert.deepEqual(seen, [traceId, traceId, traceId])
    })
  }

  test('an export is not in a request\'s context, whichever context manager is registered', async (t) => {
    for (const slot of ['ours', 'theirs']) {
      const sink = await startSink()
      t.after(() => sink.close())
      if (slot === 'theirs') api.context.setGlobalContextManager(new kit.ContextManager().enable())
      const { app } = await start(t, () => ({ options: { exporter: { url: sink.url }, buffer: { flushDelayMs: 0 } }, after: () => api.context.disable() }))
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      for (let i = 0; i < 3; i++) {
        await (await fetch(`${origin}/named`)).text()
        await sink.waitFor(i + 1)
      }
      await app.close()
      assert.deepEqual(sink.spans.map(({ name }) => name), ['GET /named', 'GET /named', 'GET /named'])
      api.context.disable()
    }
  })

  test('an instrumentation that runs the handler in its own context does not remove the request\'s', async (t) => {
    api.context.setGlobalContextManager(new kit.ContextManager().enable())
    const { app } = await start(t, () => ({ options: {}, after: () => api.context.disable() }), (app) => app.get('/wrapped', async (request) => {
      const theirs = api.ROOT_CONTEXT.setValue(Symbol('theirs'), 1)
      return api.context.with(theirs, async () => {
        await null
        return { current: lightTrace.current() === request.trace }
      })
    }))
    assert.deepEqual((await app.inject('/wrapped')).json(), { current: true })
  })

  test('a tracer provider that was shut down does no harm', async (t) => {
    const provider = kit.provider([kit.simple(new kit.InMemorySpanExporter())])
    await provider.shutdown()
    const { app } = await start(t, () => ({ options: { tracerProvider: provider } }))
    assert.equal((await app.inject('/users/7')).statusCode, 200)
    assert.equal((await app.inject('/fail')).statusCode, 500)
    await app.lightTrace.flush({ timeoutMs: 500 })
    balanced(app)
  })

  test('a tracer provider that fails does no harm', async (t) => {
    for (const tracer of [undefined, {}, { startSpan () { throw new Error('mine') } }, { startSpan: () => null }, { startSpan: () => ({ spanContext: () => ({ traceId: 'x', spanId: 5 }), end () {}, isRecording: () => true }) }]) {
      const { app } = await start(t, () => ({ options: { tracerProvider: { getTracer: () => tracer, forceFlush: () => new Promise(() => {}) }, closeTimeoutMs: 50 } }))
      assert.equal((await app.inject({ url: '/users/7', headers: CALLER })).statusCode, 200)
      assert.equal((await app.inject('/fail')).statusCode, 500)
      await app.lightTrace.flush({ timeoutMs: 10 })
      balanced(app)
    }
  })

  test('the provider\'s sampler decides, and gets the request\'s attributes', async (t) => {
    const seen = []
    const sampler = { shouldSample: (context, traceId, name, kind, attributes) => { seen.push([name, kind, attributes['http.route']]); return { decision: 0 } }, toString: () => 'test' }
    const exporter = new kit.InMemorySpanExporter()
    const { app } = await start(t, () => ({ options: { tracerProvider: kit.provider([kit.simple(exporter)], { sampler }) } }))
    assert.equal((await app.inject('/named')).statusCode, 200)
    assert.deepEqual(seen, [['GET /named', 1, '/named']])
    assert.equal(exporter.getFinishedSpans().length, 0)
    assert.equal(app.lightTrace.stats().spans.unsampled, 1)
    balanced(app)
  })

  test('an untrusted caller is linked', async (t) => {
    const exporter = new kit.InMemorySpanExporter()
    const { app } = await start(t, () => ({ options: { tracerProvider: kit.provider([kit.simple(exporter)]), trustIncoming: false } }))
    await app.inject({ url: '/named', headers: CALLER })
    const [span] = exporter.getFinishedSpans()
    assert.notEqual(span.spanContext().traceId, CALLER.traceparent.slice(3, 35))
    assert.equal(span.parentSpanContext, undefined)
    assert.equal(span.links[0].context.spanId, 'b7ad6b7169203331')
  })

  test('processors get onStart, onEnding and onEnd, in order', async (t) => {
    const calls = []
    const processor = {
      onStart (span, context) { calls.push(['onStart', span.name, span.attributes['url.path'], api.trace.getSpanContext(context)?.spanId]); span.setAttribute('from.onStart', 1) },
      onEnding (span) { calls.push(['onEnding', span.isRecording()]); span.setAttribute('from.onEnding', 1) },
      onEnd (span) { calls.push(['onEnd', span.ended, span.attributes['from.onStart'], span.attributes['from.onEnding']]) },
      async forceFlush () { calls.push(['forceFlush']) },
      async shutdown () { calls.push(['shutdown']) }
    }
    const { app } = await start(t, () => ({ options: { spanProcessors: [processor] } }))
    await app.inject({ url: '/named', headers: CALLER })
    await app.lightTrace.flush()
    await app.close()
    assert.deepEqual(calls, [
      ['onStart', 'GET /named', '/named', 'b7ad6b7169203331'],
      ['onEnding', true],
      ['onEnd', true, 1, 1],
      ['forceFlush'],
      ['shutdown']
    ])
  })

  // A04
  test('processors that throw, reject or hang do no harm', async (t) => {
    const exporter = new kit.InMemorySpanExporter()
    const broken = Object.fromEntries(['onStart', 'onEnding', 'onEnd', 'forceFlush', 'shutdown'].map((name) => [name, () => { throw new Error(name) }]))
    const rejecting = Object.fromEntries(['onStart', 'onEnding', 'onEnd', 'forceFlush', 'shutdown'].map((name) => [name, async () => { throw new Error(name) }]))
    const hanging = { onStart () {}, onEnd () {}, forceFlush: () => new Promise(() => {}), shutdown: () => new Promise(() => {}) }
    const { app } = await start(t, () => ({ options: { spanProcessors: [broken, rejecting, hanging, kit.simple(exporter)], closeTimeoutMs: 20 } }))
    assert.equal((await app.inject('/named')).statusCode, 200)
    await app.lightTrace.flush({ timeoutMs: 20 })
    assert.equal(exporter.getFinishedSpans().length, 1)
    balanced(app)
    await app.close()
  })

  test('a library that only knows the API nests its spans', async (t) => {
    const { app, spans } = await start(t, viaProcessors, (app) => app.get('/query', async () => ({ rows: await query(api) })))
    await app.inject('/query')
    assert.deepEqual(draw(await spans(5)).map((line) => line.replace(/ \[.*/, '')), [
      'SERVER GET /query',
      '  INTERNAL client:operation',
      '    INTERNAL client:connect',
      '    CLIENT engine:query',
      '      CLIENT engine:db'
    ])
  })

  test('the API works for the second of two apps after a close, and for a new app', async (t) => {
    const first = await start(t, viaProcessors)
    const second = await start(t, viaProcessors)
    early.startSpan('one').end()
    assert.equal((await first.spans(1)).length, 1)
    await first.app.close()
    early.startSpan('two').end()
    assert.equal((await second.spans(1))[0].name, 'two')
    await second.app.close()
    assert.equal(globalThis[Symbol.for('opentelemetry.js.api.1')]?.trace, undefined)
    const third = await start(t, viaProcessors)
    early.startSpan('three').end()
    assert.equal((await third.spans(1))[0].name, 'three')
  })

  test('suppressed tracing is respected', async (t) => {
    const { app, spans } = await start(t, viaProcessors, (app) => app.get('/quiet', async () => {
      const key = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
      return api.context.with(api.context.active().setValue(key, true), () => ({ recording: early.startSpan('no').isRecording() }))
    }))
    assert.deepEqual((await app.inject('/quiet')).json(), { recording: false })
    assert.equal((await spans(1)).length, 1)
  })

  async function start (t, mode, moreRoutes = () => {}) {
    const { options, spans, before, after } = await mode(t)
    await before?.()
    const app = Fastify({ forceCloseConnections: true })
    t.after(async () => {
      await app.close()
      await after?.()
    })
    await app.register(lightTrace, { exporter: 'none', ...options })
    routes(app, api, lightTrace)
    moreRoutes(app)
    await app.ready()
    return { app, spans }
  }
}

/** The ways to create and export spans. Each returns the options to register with, and a function that returns the spans. */
function modes (kit) {
  const { api, Fastify } = kit
  assert.ok(Fastify)
  return {
    natively: native(),
    'natively, beside processors': native(undefined, () => ({ spanProcessors: [kit.batch(new kit.InMemorySpanExporter())] })),
    'through processors': inMemory(kit, (processor) => ({ spanProcessors: [processor] })),
    'in SDK mode': inMemory(kit, (processor) => ({ tracerProvider: kit.provider([processor]) })),
    'in SDK mode, found in the API': inMemory(kit, () => ({ exporter: undefined }), ({ processor }) => {
      api.context.setGlobalContextManager(new kit.ContextManager().enable())
      api.trace.setGlobalTracerProvider(kit.provider([processor]))
    }),
    'natively, with the context slot taken': native(() => api.context.setGlobalContextManager(new kit.ContextManager().enable())),
    'through processors, with the context slot taken': inMemory(kit, (processor) => ({ spanProcessors: [processor] }),
      () => api.context.setGlobalContextManager(new kit.ContextManager().enable()))
  }

  function native (before, optionsFor = () => ({})) {
    return async (t) => {
      const sink = await startSink()
      t.after(() => sink.close())
      return {
        options: { exporter: { url: sink.url }, buffer: { flushDelayMs: 5 }, ...optionsFor() },
        spans: async (count) => (await sink.waitFor(count)).map((span) => ({ ...span, exception: exceptionOf(span.events) })),
        before,
        after: before && (() => api.context.disable())
      }
    }
  }
}

function inMemory (kit, optionsFor, register) {
  return async () => {
    const exporter = new kit.InMemorySpanExporter()
    const processor = kit.batch(exporter)
    return {
      options: optionsFor(processor),
      async spans (count) {
        for (let turn = 0; turn < 500 && exporter.getFinishedSpans().length < count; turn++) {
          await new Promise((resolve) => setImmediate(resolve))
          await processor.forceFlush()
        }
        return exporter.getFinishedSpans().map(fromSdk)
      },
      before: register && (() => register({ processor })),
      after: register && (() => { kit.api.trace.disable(); kit.api.context.disable() })
    }
  }
}

const KINDS = ['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']

function fromSdk (span) {
  const { traceId, spanId } = span.spanContext()
  return {
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId ?? span.parentSpanId ?? '',
    name: span.name,
    kind: KINDS[span.kind],
    attributes: span.attributes,
    status: { code: ['UNSET', 'OK', 'ERROR'][span.status.code] },
    exception: exceptionOf(span.events)
  }
}

function exceptionOf (events) {
  const event = events.find(({ name }) => name === 'exception')
  return event === undefined ? '' : ` exception=${event.attributes['exception.type']}`
}

function routes (app, api, lightTrace) {
  app.get('/users/:id', async (request) => {
    await request.trace.withSpan('by hand', async () => {
      await new Promise((resolve) => setImmediate(resolve))
      api.trace.getTracer('lib').startActiveSpan('by api', { kind: 2, attributes: { 'rpc.system': 'x' } }, (span) => span.end())
    })
    await new Promise((resolve) => setTimeout(resolve, 1))
    app.lightTrace.tracer.startSpan('after a timer').end()
    return {}
  })
  app.get('/fail', async (request) => request.trace.withSpan('failing', async () => { throw new TypeError('no') }))
  app.get('/named', { config: { trace: { attributes: { mine: 1 } } } }, async () => 'ok')
  app.get('/bad', async (request, reply) => { reply.code(400); throw new Error('bad') })
  app.get('/ids', async (request) => {
    const ids = [request.trace.traceId]
    await new Promise((resolve) => setImmediate(resolve))
    ids.push(lightTrace.current().traceId, api.trace.getActiveSpan().spanContext().traceId)
    return ids
  })
  where(app, api, lightTrace)
}

/** POST /where: reports at each stage of a request whether the API's active span and `current()` are the request's. */
function where (app, api, lightTrace) {
  let finish
  app.late = new Promise((resolve) => { finish = resolve })
  const seen = []
  const look = (place, request) => seen.push(`${place} ${api.trace.getActiveSpan() === request.trace.span} ${lightTrace.current() === request.trace}`)
  app.register(async (app) => {
    for (const hook of ['preParsing', 'preValidation', 'preHandler', 'onSend']) {
      app.addHook(hook, async (request) => { look(hook, request) })
    }
    app.addHook('onResponse', async (request) => {
      look('onResponse', request)
      finish(seen.slice(-2))
    })
    app.post('/where', async (request) => {
      look('handler', request)
      await null
      look('awaited', request)
      await new Promise((resolve) => setTimeout(resolve, 1))
      look('timer', request)
      await request.trace.withSpan('child', async (span) => {
        await null
        seen.push(`child ${api.trace.getActiveSpan() === span} ${lightTrace.current() === request.trace}`)
      })
      look('after child', request)
      return seen.slice()
    })
  })
}

async function requests (app) {
  await app.inject({ url: '/users/7?a=1', headers: CALLER })
  for (const url of ['/fail', '/nowhere', '/named', '/bad']) await app.inject(url)
}

/** Returns the lines of each trace, sorted, because the spans of two requests may arrive in either order. */
function traces (lines) {
  return lines.join('\n').split(/\n(?=SERVER)/).sort()
}

/** Draws one line for each span, with children under their parents, in the order of arrival. */
function draw (spans) {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const lines = []
  const roots = spans.filter(({ parentSpanId }) => !ids.has(parentSpanId))
  for (const root of roots) drawUnder(root, '')
  return lines

  function drawUnder (span, indent) {
    const status = span.status.code === 'UNSET' ? '' : ` ${span.status.code}`
    const under = indent === '' && span.parentSpanId ? ` under ${span.parentSpanId}` : ''
    lines.push(`${indent}${span.kind} ${span.name} [${shown(span.attributes)}]${status}${span.exception}${under}`)
    for (const child of spans.filter(({ parentSpanId }) => parentSpanId === span.spanId)) drawUnder(child, `${indent}  `)
  }
}

const SHOWN = ['http.route', 'url.path', 'url.query', 'rpc.system', 'mine', 'http.response.status_code', 'error.type']

function shown (attributes) {
  return SHOWN.filter((name) => attributes[name] !== undefined).map((name) => `${name}=${attributes[name]}`).join(' ')
}

function balanced (app) {
  const { spans } = app.lightTrace.stats()
  assert.equal(spans.started, spans.ended)
  assert.equal(spans.ended, spans.accepted + spans.unsampled)
  assert.equal(spans.accepted, spans.handedOver)
}

/** Like an ORM. It only knows the API, starts spans with options, and creates some of them after the fact. */
async function query (api) {
  const tracer = api.trace.getTracer('orm', '1')
  return tracer.startActiveSpan('client:operation', { kind: 0 }, async (operation) => {
    await tracer.startActiveSpan('client:connect', async (span) => { await null; span.end() })
    const parent = api.context.active()
    const now = Date.now()
    const engine = tracer.startSpan('engine:query', { kind: 2, startTime: now }, parent)
    tracer.startSpan('engine:db', { kind: 2, startTime: [Math.floor(now / 1000), 0], attributes: { 'db.system.name': 'postgresql' } }, api.trace.setSpan(parent, engine)).end(now + 1)
    engine.end(now + 2)
    operation.end()
    return 1
  })
}
