'use strict'

// The API must not throw. Whatever an application's value does when it is read, the handler continues, and its span is part of the trace.
// https://opentelemetry.io/docs/specs/otel/error-handling/

const { test } = require('tap')
const { EventEmitter } = require('node:events')
const { trace: traceApi, context: contextApi, propagation, ROOT_CONTEXT } = require('@opentelemetry/api')
const { tracedApp } = require('../support/traced-app')

const refuse = () => { throw new Error('refused') }
const traps = {
  get: refuse,
  set: refuse,
  has: refuse,
  ownKeys: refuse,
  getPrototypeOf: refuse,
  getOwnPropertyDescriptor: refuse,
  defineProperty: refuse,
  deleteProperty: refuse,
  apply: refuse
}

function revoked (target) {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

const HOSTILE = {
  'a proxy': new Proxy({}, traps),
  'a proxy of a list': new Proxy([1], traps),
  'a proxy of a function': new Proxy(() => {}, traps),
  'a revoked list': revoked([]),
  'a revoked function': revoked(() => {}),
  'an object without a prototype': Object.create(null),
  'an object without text': { toString: refuse },
  'an object with getters': Object.defineProperties({}, Object.fromEntries(
    ['then', 'message', 'code', 'name', 'key', 'value', 'getValue'].map((key) => [key, { get: refuse, enumerable: true }]))),
  'an error': Object.assign(new Error('x'), { validation: revoked([]) }),
  'an emitter': Object.freeze(new EventEmitter()),
  'a symbol': Symbol('s'),
  'a BigInt': 1n,
  null: null
}

const SPAN_KEY = Symbol.for('OpenTelemetry Context Key SPAN')

/** @type {Record<string, (value: any, given: { span, trace, tracer, baggage }) => unknown>} */
const CALLS = {
  'setAttribute, key': (value, { span }) => span.setAttribute(value, 1),
  'setAttribute, value': (value, { span }) => span.setAttribute('k', value),
  setAttributes: (value, { span }) => span.setAttributes(value),
  'addEvent, name': (value, { span }) => span.addEvent(value),
  'addEvent, attributes': (value, { span }) => span.addEvent('e', value),
  'addEvent, time': (value, { span }) => span.addEvent('e', {}, value),
  addLink: (value, { span }) => span.addLink(value),
  'addLink, context': (value, { span }) => span.addLink({ context: value, attributes: value }),
  addLinks: (value, { span }) => span.addLinks(value),
  setStatus: (value, { span }) => span.setStatus(value),
  'setStatus, message': (value, { span }) => span.setStatus({ code: 2, message: value }),
  updateName: (value, { span }) => span.updateName(value),
  recordException: (value, { span }) => span.recordException(value, value),
  'recordException, validation': (value, { span }) => span.recordException({ validation: value }),
  fail: (value, { trace }) => trace.fail(value),
  inject: (value, { trace }) => { trace.inject(value) },
  'withSpan, name': (value, { trace }) => trace.withSpan(value, () => {}),
  'withSpan, options': (value, { trace }) => trace.withSpan('s', Object(typeof value === 'function' ? {} : value), () => {}),
  'withSpan, attributes': (value, { trace }) => trace.withSpan('s', { attributes: value, links: value, startTime: value }, () => {}),
  'withSpan, answer': (value, { trace }) => { trace.withSpan('s', () => value) },
  'withSpan under it': (value, { trace }) => contextApi.with(contextApi.active().setValue(SPAN_KEY, value), () => trace.withSpan('s', () => {})),
  'startSpan, name': (value, { tracer }) => tracer.startSpan(value).end(),
  'startSpan, options': (value, { tracer }) => tracer.startSpan('s', value).end(),
  'startSpan, attributes': (value, { tracer }) => tracer.startSpan('s', { attributes: value, kind: value }).end(),
  'startSpan, links': (value, { tracer }) => tracer.startSpan('s', { links: value, root: value }).end(),
  'startSpan, context': (value, { tracer }) => tracer.startSpan('s', {}, value).end(),
  'startSpan under it': (value, { tracer }) => tracer.startSpan('s', {}, ROOT_CONTEXT.setValue(SPAN_KEY, value)).end(),
  'end, time': (value, { tracer }) => tracer.startSpan('s').end(value),
  getTracer: (value) => traceApi.getTracer(value, value, value),
  'context.with': (value) => contextApi.with(value, () => {}),
  'context.bind': (value) => { contextApi.bind(value, () => {}) },
  'context.bind, target': (value) => { contextApi.bind(ROOT_CONTEXT, value) },
  'propagation.inject': (value) => propagation.inject(value, value),
  'propagation.extract': (value) => { propagation.extract(value, value) },
  setEntry: (value, { baggage }) => baggage.setEntry('k', value).getAllEntries()
}

for (const [kind, trace] of Object.entries({
  'a sampled request': {},
  'a kept request': { sampler: 0, keep: { errors: true } },
  'a request that an SDK samples': { sampler: { shouldSample: () => ({ decision: 2 }), toString: () => 'all' } },
  'an unsampled request': { sampler: 0 }
})) {
  test(`values that throw do not affect the handler: ${kind}`, async (t) => {
    const thrown = []
    const { app } = await tracedApp(t, {
      listen: false,
      trace: { registerGlobals: true, ...trace },
      routes: (app) => app.get('/', async ({ trace }, reply) => {
        const { tracer } = app.lightTrace
        const baggage = propagation.getBaggage(propagation.extract(ROOT_CONTEXT, { baggage: 'a=1' }))
        for (const [what, value] of Object.entries(HOSTILE)) {
          for (const [call, fn] of Object.entries(CALLS)) {
            for (const span of [trace.span, tracer.startSpan('child')]) {
              try {
                fn(value, { span, trace, tracer, baggage })
              } catch (error) {
                thrown.push(`${call}: ${what}: ${error}`)
              }
              if (span !== trace.span) span.end()
            }
          }
        }
        return reply.code(500).send('ok')
      })
    })
    t.equal((await app.inject('/')).body, 'ok')
    t.same(thrown, [])
    const { started, ended } = app.lightTrace.stats().spans
    t.equal(ended, started)
  })
}

test('a span whose name, attributes or links throw is still a child, with what can be read', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async ({ trace }) => {
      const { tracer } = app.lightTrace
      for (const what of ['a proxy', 'an object without a prototype']) tracer.startSpan(HOSTILE[what], {}, trace).end()
      tracer.startSpan('kind', { kind: 2, attributes: HOSTILE['a proxy'], links: HOSTILE['a revoked list'] }, trace).end()
      tracer.startSpan('attributes', { attributes: { get bad () { return refuse() }, good: 1 } }, trace).end()
    })
  })
  await app.inject('/')
  t.equal(await collector.tree(), [
    'SERVER GET /',
    '  INTERNAL object',
    '  INTERNAL object',
    '  CLIENT kind',
    '  INTERNAL attributes'
  ].join('\n'))
  t.same((await collector.spans()).find(({ name }) => name === 'attributes').attributes, { good: 1 })
})

test('a value that a user\'s function throws may itself throw when it is read', async (t) => {
  const logged = []
  const loggerInstance = { level: 'warn', child: () => loggerInstance, warn: ({ code }, message) => logged.push(`${code} ${message}`) }
  for (const level of ['trace', 'debug', 'info', 'error', 'fatal']) loggerInstance[level] = () => {}
  const fails = () => { throw HOSTILE['a proxy'] }
  const { app, collector } = await tracedApp(t, {
    listen: false,
    fastify: { loggerInstance },
    trace: { redactQuery: fails, attributes: fails, sampler: { shouldSample: fails, toString: () => 'fails' } },
    routes: (app) => app.get('/', { config: { trace: { sampler: 1 } } }, async () => 'ok')
  })
  t.equal((await app.inject('/?a=b')).body, 'ok')
  t.equal(await collector.tree(), 'SERVER GET /')
  t.notOk(app.lightTrace.tracer.startSpan('s', { root: true }).isRecording())
  t.match(logged, [/^LT_WARN_CALLBACK the function of the option attributes failed/, /^LT_WARN_CALLBACK the option redactQuery failed/, /^LT_WARN_SAMPLER the sampler failed; its spans are not sampled: \[object\]/])
})
