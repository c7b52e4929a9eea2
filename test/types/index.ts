import { Attributes, Span, Tracer, TracerProvider } from '@opentelemetry/api'
import { AlwaysOnSampler, BasicTracerProvider, BatchSpanProcessor, InMemorySpanExporter, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base'
import fastify, { FastifyContextConfig, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import lightTrace, { lightTrace as named, JobOptions, LightTraceInstance, LightTraceOptions, LightTraceStats, RequestTrace, RouteTraceOptions, Sampler } from '../..'
import { Budget, CollectedSpan, createCollector } from '../../lib/features/testing/testing'
import { expectAssignable, expectTypeOf } from './expect'

interface User { id: string }

declare module '../..' {
  interface LightTraceStore {
    user: User
    attempts: number
  }
}

const app = fastify()

// All forms of registration.
app.register(lightTrace)
app.register(lightTrace, {})
app.register(named, { serviceName: 'shop' })
app.register(lightTrace.default, { sampler: 0.1, prefix: '/api' })
app.register(lightTrace, () => ({ serviceName: 'shop' }))
fastify({ http2: true }).register(lightTrace, { logs: false })
fastify({ logger: { level: 'silent' } }).register(lightTrace, { logs: false })
fastify({ logger: false }).register(lightTrace, { logs: { ids: true, export: false, buffer: false } })
// @ts-expect-error
app.register(lightTrace, { samplr: 0.1 })
// @ts-expect-error
app.register(lightTrace, { sampler: 'sometimes' })
// @ts-expect-error
app.register(lightTrace, { exporter: { ulr: 'http://localhost:4318' } })

// Every option.
expectAssignable<LightTraceOptions>({
  enabled: process.env.NODE_ENV !== 'test',
  serviceName: 'shop',
  resource: { 'deployment.environment.name': 'prod' },
  exporter: 'otlp',
  spanProcessors: [new BatchSpanProcessor(new InMemorySpanExporter())],
  tracerProvider: new BasicTracerProvider(),
  registerGlobals: true,
  sampler: 0.1,
  keep: { errors: true, slow: true, recorder: { seconds: 5 } },
  slow: { afterMs: 500, blockedLoop: { afterMs: 250 } },
  ignore: ['/health', '/assets/*', /^\/internal/, (request: FastifyRequest) => request.method === 'OPTIONS'],
  trustIncoming: (request: FastifyRequest) => request.ip === '10.0.0.1',
  headers: { request: ['x-tenant'], response: ['x-cache'], baggage: ['tenant.id'], serverTiming: true },
  spanName: (request: FastifyRequest) => request.method,
  attributes: (request: FastifyRequest) => ({ tier: 'gold' }),
  inheritAttributes: ['tenant.id'],
  onStart: (span: Span, request: FastifyRequest) => {},
  onEnd: (span: Span, request: FastifyRequest, reply: FastifyReply) => {},
  store: (request: FastifyRequest) => ({ attempts: 1 }),
  spans: { handler: true, hooks: ['preHandler'], unrouted: true, codeLocation: true, clientErrors: false },
  outbound: {
    http: true,
    undici: true,
    libraries: true,
    channels: { 'my-lib:op': { kind: 'client', name: (context: any) => 'op', attributes: (context: any) => ({}) } },
    propagateTo: (url: string) => true
  },
  logs: { ids: false, export: { url: 'http://localhost:4318' }, level: 'info', unsampledLevel: 'error', maxPerSecond: 100, buffer: 'debug' },
  buffer: { maxBytes: 32 * 1024 * 1024, flushDelayMs: 1000, closeTimeoutMs: 5000 },
  limits: { attributes: 128, attributeValueLength: 16384, events: 128, links: 128, sampledPerSecond: 200 }
})

expectTypeOf(lightTrace.flushAfter(app, async (event: string) => event.length, { timeoutMs: 500 })).toBe<(event: string) => Promise<number>>()
// @ts-expect-error
lightTrace.flushAfter(app, 'handler')
// @ts-expect-error
app.register(lightTrace, { sampler: { perMinute: 50 } })
for (const sampler of ['always_on', 'always_off', 0.5, { perSecond: 50 }, new AlwaysOnSampler(), new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(0.1) })] as const) {
  expectAssignable<LightTraceOptions['sampler']>(sampler)
}
expectAssignable<LightTraceOptions>({ tracerProvider: false, outbound: false, keep: false, ignore: '/health', store: { attempts: 0 } })
expectAssignable<LightTraceOptions['exporter']>({ url: new URL('http://localhost:4318'), headers: { 'api-key': 'x' }, compression: 'gzip', timeoutMs: 1, ca: 'PEM', cert: Buffer.from(''), key: 'PEM', insecureHeaders: true })
// @ts-expect-error
expectAssignable<LightTraceOptions['exporter']>({ urls: ['http://a:4318'] })
// @ts-expect-error
expectAssignable<LightTraceOptions['exporter']>('zipkin')
// @ts-expect-error
expectAssignable<LightTraceOptions['spans']>({ hooks: ['onReady'] })
// @ts-expect-error
expectAssignable<LightTraceOptions['store']>({ attempts: 'two' })
// @ts-expect-error
expectAssignable<LightTraceOptions['headers']>({ serverTiming: 'traceresponse' })
// @ts-expect-error
expectAssignable<RouteTraceOptions>({ spans: { unrouted: true } })

// Route config.
app.get('/users/:id', { config: { trace: { attributes: { tier: 'gold' }, spanName: 'user', sampler: 1, spans: { handler: true }, ignore: ['/x'] } } }, async (request) => {
  expectTypeOf(request.trace).toBe<RequestTrace>()
  expectTypeOf(request.trace.span).toBe<Span>()
  expectTypeOf(request.trace.traceId).toBe<string>()
  expectTypeOf(request.trace.fail(new Error('no'))).toBe<void>()
  request.trace.fail('any')
  expectTypeOf(request.trace.keep('big order')).toBe<void>()
  request.trace.keep()
  expectTypeOf(request.trace.spanId).toBe<string>()
  expectTypeOf(request.trace.sampled).toBe<boolean>()
  expectTypeOf(request.trace.traceparent).toBe<string>()
  // @ts-expect-error
  request.trace.traceId = ''

  // The augmented store.
  expectTypeOf(request.trace.get('user')).toBe<User | undefined>()
  expectTypeOf(request.trace.set('attempts', 2)).toBe<void>()
  // @ts-expect-error
  request.trace.set('attempts', 'two')
  // @ts-expect-error
  request.trace.get('usr')
  expectTypeOf(request.trace.store.attempts).toBe<number | undefined>()

  expectTypeOf(request.trace.withSpan('load user', async (span) => {
    expectTypeOf(span).toBe<Span>()
    return 1
  })).toBe<Promise<number>>()
  expectTypeOf(request.trace.withSpan('load user', { attributes: { a: 1 } }, () => 'x')).toBe<string>()
  expectTypeOf(request.trace.run((a: number) => a, 1)).toBe<number>()
  expectTypeOf(request.trace.bind((a: string) => a.length)).toBe<(a: string) => number>()
  expectTypeOf(request.trace.inject()).toBe<Record<string, string>>()
  expectTypeOf(request.trace.inject({ accept: '*/*' })).toBe<{ accept: string }>()
})
app.get('/off', { config: { trace: false } }, async () => {})
// @ts-expect-error
expectAssignable<RouteTraceOptions>({ attribute: {} })
expectAssignable<RouteTraceOptions>({ attributes: (request: FastifyRequest): Attributes => ({}), ignore: true })

// The app.
expectTypeOf(app.lightTrace.tracer).toBe<Tracer>()
expectTypeOf(app.lightTrace.tracerProvider).toBe<TracerProvider>()
expectTypeOf(app.lightTrace.run).toBe<typeof lightTrace.run>()
expectTypeOf(app.lightTrace.run({ traceparent: 'x' }, { name: 'job' }, (context) => context.traceId)).toBe<string>()
expectTypeOf(app.lightTrace.flush()).toBe<Promise<void>>()
expectTypeOf(app.lightTrace.flush({ timeoutMs: 100 })).toBe<Promise<void>>()
expectTypeOf(app.lightTrace.stats()).toBe<LightTraceStats>()
expectTypeOf(app.lightTrace.stats().spans.dropped['buffer_full']).toBe<number>()
expectTypeOf(app.lightTrace.stats().lastError).toBe<string | null>()

// Outside of a request.
expectTypeOf(lightTrace.current()).toBe<RequestTrace | undefined>()
expectTypeOf(named.current()).toBe<RequestTrace | undefined>()
class Pool { query () {} }
expectTypeOf(lightTrace.traceClient(new Pool())).toBe<Pool>()

// light-trace/testing.
const collector = createCollector()
expectTypeOf(createCollector({ timeoutMs: 100 })).toBe<typeof collector>()
new BasicTracerProvider({ spanProcessors: [collector] }) // eslint-disable-line no-new
app.register(lightTrace, { spanProcessors: [collector] })
expectTypeOf(collector.spans()).toBe<Promise<CollectedSpan[]>>()
expectTypeOf(collector.tree()).toBe<Promise<string>>()
expectTypeOf(collector.reset()).toBe<void>()
expectTypeOf(collector.check({ repeats: 3, calls: { redis: 5 }, afterResponse: false, open: false })).toBe<Promise<void>>()
// @ts-expect-error
collector.check({ milliseconds: 3 })
// @ts-expect-error
collector.check({ calls: { redis: 'few' } })
collector.metrics().then(([metric]) => expectTypeOf(metric.points[0].exemplars).toBe<Array<{ value: number, traceId: string, spanId: string }>>())

app.register(lightTrace, { attributes: { tier: 'gold', zones: ['a'] } })
// @ts-expect-error
app.register(lightTrace, { attributes: 'gold' })

// Metrics.
app.register(lightTrace, { metrics: true })
app.register(lightTrace, { metrics: { path: '/metrics', attributes: (request, reply) => ({ tenant: request.url, status: reply.statusCode }) } })
expectTypeOf(app.lightTrace.metrics({ openMetrics: true })).toBe<Promise<string>>()
app.lightTrace.meterProvider.getMeter('shop').createCounter('orders').add(1)
// @ts-expect-error
app.register(lightTrace, { metrics: { temporality: 'sometimes' } })
// @ts-expect-error
app.get('/wrong', { config: { trace: { metrics: 1 } } }, async () => {})
collector.spans().then(([span]) => {
  expectTypeOf(span.traceId).toBe<string>()
  expectAssignable<string>(span.kind)
})

// The options that `true` and `false` stand for, and typos in a route's options.
expectAssignable<LightTraceOptions>({ keep: { asked: true }, spans: true, outbound: true })
expectAssignable<RouteTraceOptions>({ spans: false })
// @ts-expect-error
app.get('/wrong', { config: { trace: { sampler: 'sometimes' } } }, async () => {})
// @ts-expect-error
app.route({ method: 'GET', url: '/wrong', config: { trace: { spanName: 1 } }, handler: async () => {} })
// @ts-expect-error
expectAssignable<RouteTraceOptions>({ atributes: {} })
// Correct options pass in every notation, and functions infer their parameters.
const routeTrace: RouteTraceOptions = { sampler: 0.5, spans: { hooks: ['onSend'] } }
app.get('/right', { config: { trace: routeTrace, other: 1 } }, async () => {})
const contextConfig: FastifyContextConfig = { trace: { sampler: 1 } }
app.get('/right', { config: contextConfig }, async () => {})
const routeOptions: RouteOptions = { method: 'GET', url: '/right', config: { trace: { spanName: (request) => request.url } }, handler: async () => {} }
app.route(routeOptions)
app.get('/right', { config: { trace: { attributes: (request) => ({ host: request.host }), spans: true, metrics: undefined } } }, async () => {})
app.get('/right', { config: { trace: Math.random() < 0.5 ? { sampler: 1 } : false } }, async () => {})
app.addHook('onRoute', (route) => { route.config = { ...route.config, trace: { ...routeTrace, ignore: true } } })

// exactOptionalPropertyTypes: each option accepts `undefined`, like at run time, including nested options. The names of those that do not:
type IsAny<T> = 0 extends 1 & T ? true : false
type Refusing<T> = IsAny<T> extends true ? never
  : T extends ((...args: any[]) => any) | Iterable<any> | URL | RegExp ? never
    : T extends object ? { [K in keyof T & string as string extends K ? never : K]-?: ({} extends Pick<T, K> ? undefined extends Required<T>[K] ? never : K : never) | Below<K, Refusing<Required<T>[K]>> } extends infer Names ? Names[keyof Names] : never
      : never
type Below<K extends string, Name> = Name extends string ? `${K}.${Name}` : never
type Third<F> = F extends (a: any, b: any, c: infer Options) => any ? Options : never
type Routes = NonNullable<Required<FastifyContextConfig>['trace']>

declare const refusing: Refusing<
  Omit<LightTraceOptions, 'store'> | JobOptions | Routes | Pick<FastifyContextConfig, 'trace'> | Third<typeof lightTrace.flushAfter> |
  Parameters<LightTraceInstance['flush' | 'snapshot' | 'metrics']>[0] | ReturnType<Sampler['shouldSample']> |
  Budget | Parameters<typeof createCollector>[0]
>
expectTypeOf(refusing).toBe<never>()
