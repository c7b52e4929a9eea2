'use strict'

// Ignored and switched-off routes, `enabled: false` and OTEL_SDK_DISABLED: no spans and no children. The context still exists, and an
// incoming traceparent is forwarded unchanged (docs/decisions.md, D12).

const { test } = require('tap')
const { trace: api, context } = require('@opentelemetry/api')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

async function report (request) {
  await null
  const { trace } = request
  const child = trace.withSpan('child', (span) => span.isRecording())
  const byTracer = this.lightTrace.tracer.startSpan('by the tracer', {}, trace).isRecording()
  return {
    current: lightTrace.current() === trace,
    child,
    byTracer,
    recording: trace.span.isRecording(),
    sampled: trace.sampled,
    inject: trace.inject(),
    traceId: trace.traceId
  }
}

const routes = (app) => {
  app.get('/health', report)
  app.get('/assets/*', report)
  app.get('/internal/x', report)
  app.get('/off', { config: { trace: false } }, report)
  app.get('/route-ignore', { config: { trace: { ignore: (request) => request.query.quiet === 'yes' } } }, report)
  app.get('/traced', report)
}

const IGNORED = ['/health', '/health?x=1', '/assets/a/b.js', '/internal/x', '/off', '/route-ignore?quiet=yes']
const ignore = ['/health', '/assets/*', /^\/internal/]

test('ignored requests have no span and no children, and pass their caller\'s context on unchanged', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { ignore }, routes })
  for (const url of IGNORED) {
    const own = (await app.inject(url)).json()
    t.match(own, { current: true, child: false, byTracer: false, recording: false, inject: {} }, url)
    const called = (await app.inject({ url, headers: { traceparent, tracestate: 'a=b' } })).json()
    t.match(called, { current: true, child: false, byTracer: false, recording: false, traceId: traceparent.slice(3, 35), inject: { traceparent, tracestate: 'a=b' } }, url)
  }
  t.equal(await collector.tree(), '')
  t.match(app.lightTrace.stats().spans, { started: 0, ended: 0 })
  for (const url of ['/traced', '/route-ignore', '/healthy', '/HEALTH']) await app.inject(url)
  t.same((await collector.spans()).filter(({ kind }) => kind === 'SERVER').map(({ attributes }) => attributes['url.path']), ['/traced', '/route-ignore', '/healthy', '/HEALTH'])
})

for (const [name, variable, switchedOff] of [['OTEL_SDK_DISABLED', 'TRUE', {}], ['enabled: false', undefined, { enabled: false }]]) {
  const switchOff = (t) => {
    if (variable === undefined) return
    process.env.OTEL_SDK_DISABLED = variable
    t.teardown(() => { delete process.env.OTEL_SDK_DISABLED })
  }

  test(`${name} switches off every span and nothing else`, async (t) => {
    switchOff(t)
    const trace = { ...switchedOff, spans: { unrouted: true }, headers: { serverTiming: true }, logs: true }
    const { app, collector } = await tracedApp(t, { listen: false, trace, routes })
    const answer = (await app.inject({ url: '/traced', headers: { traceparent } })).json()
    t.match(answer, { current: true, child: false, byTracer: false, recording: false, inject: { traceparent } })
    t.equal(await collector.tree(), '')
    t.equal(app.lightTrace.tracer.startSpan('outside').isRecording(), false)
  })

  test(`${name} passes a trusted caller's valid headers on unchanged, and adds none`, async (t) => {
    switchOff(t)
    const injected = async (trace, headers) => {
      const { app } = await tracedApp(t, { listen: false, trace: { ...trace, ...switchedOff }, routes: (app) => { app.get('/', ({ trace }) => ({ ...trace.inject(), ...trace.store })) } })
      return (await app.inject({ url: '/', headers })).json()
    }
    t.same(await injected({}, {}), {})
    t.same(await injected({}, { traceparent, tracestate: 'a=1', baggage: 'b=2' }), { traceparent, tracestate: 'a=1', baggage: 'b=2' })
    t.same(await injected({}, { baggage: 'b=2' }), { baggage: 'b=2' })
    t.same(await injected({}, { traceparent: traceparent.toUpperCase() }), {})
    t.same(await injected({ trustIncoming: false }, { traceparent, baggage: 'b=2' }), {})
    t.same(await injected({ trustIncoming: (request) => request.headers.host === 'friend' }, { traceparent, host: 'friend' }), { traceparent })
    t.same(await injected({ store: (request) => ({ from: request.url }) }, {}), { from: '/' })
  })
}

test('the OpenTelemetry API agrees: no child in an ignored request, one in a traced request', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { ignore: '/quiet', registerGlobals: true },
    routes: (app) => {
      const library = api.getTracer('a library')
      const handler = async (request) => {
        await null
        library.startSpan('child').end()
        return { isActive: context.active() === request.trace, recording: api.getActiveSpan()?.isRecording() }
      }
      app.get('/quiet', handler)
      app.get('/loud', handler)
    }
  })
  t.same((await app.inject('/quiet')).json(), { isActive: true, recording: false })
  t.same((await app.inject('/loud')).json(), { isActive: true, recording: true })
  t.equal(await collector.tree(), 'SERVER GET /loud\n  INTERNAL child')
})
