'use strict'

// `inheritAttributes`: the attributes that exported log records copy from their request's span.
// Feature: inherit, logs

const { test } = require('tap')
const { without } = require('../support/features')
const { loggingApp } = require('../support/logging-app')
const { testing } = require('../support/collector')

const inheritAttributes = ['tenant.id', 'tier']
const found = (records, body) => records.find((record) => record.body === body)?.attributes

test('a record has the request\'s attributes that were set before its line was written', async (t) => {
  let log
  const { app, exported, lines } = await loggingApp(t, {
    trace: { inheritAttributes, attributes: { tier: 'gold' } },
    routes: (app) => app.get('/', async (request) => {
      log = request.log
      log.info('before')
      request.trace.span.setAttributes({ 'tenant.id': 'acme', other: 1 })
      request.log.info({ a: 1 }, 'after')
      request.trace.withSpan('step', () => app.log.info('in a step'))
    })
  })
  app.log.info('outside')
  await app.inject('/')
  await exported()
  if (!without('log-ids')) log.info('later')
  const records = await exported()
  if (!without('log-ids')) t.match(found(records, 'later'), { tier: 'gold', 'tenant.id': 'acme' })
  t.notMatch(found(records, 'outside'), { tier: 'gold' })
  t.match(found(records, 'before'), { tier: 'gold', 'tenant.id': undefined })
  t.match(found(records, 'after'), { tier: 'gold', 'tenant.id': 'acme', a: 1, other: undefined })
  t.match(found(records, 'in a step'), { tier: 'gold', 'tenant.id': 'acme' })
  t.match(found(records, 'request completed'), { tier: 'gold', 'tenant.id': 'acme' })
  t.notOk(lines.some((line) => line.includes('acme')), 'printed lines are unchanged')
})

test('the line `incoming request` has them, too', { skip: without('log-ids') }, async (t) => {
  const { app, exported } = await loggingApp(t, { trace: { inheritAttributes, attributes: () => ({ 'tenant.id': 'acme' }) }, routes: (app) => app.get('/', async () => 'ok') })
  await app.inject('/')
  t.match(found(await exported(), 'incoming request'), { 'tenant.id': 'acme' })
})

test('a line\'s own attribute is kept, whether or not the line is parsed', async (t) => {
  const { app, exported } = await loggingApp(t, {
    trace: { inheritAttributes: ['tenant.id', 'tier', 'zones', 'odd "key" ä'], attributes: { 'tenant.id': 'acme', tier: 'gold', zones: ['a', 'ä'], 'odd "key" ä': true } },
    routes: (app) => app.get('/', async ({ log }) => {
      log.info({ 'tenant.id': 'mine' }, 'own')
      log.child({ tier: 'silver' }).info('bound')
      log.info({ of: 'tenant.id', deep: { tier: 1 } }, 'not its own')
      log.info({ escaped: '\u0001', zones: 'none' }, 'parsed')
      log.info({ long: 'x'.repeat(5000) }, 'long')
    })
  })
  await app.inject('/')
  const records = await exported()
  const rest = { zones: ['a', 'ä'], 'odd "key" ä': true }
  t.match(found(records, 'own'), { 'tenant.id': 'mine', tier: 'gold', ...rest })
  t.match(found(records, 'bound'), { 'tenant.id': 'acme', tier: 'silver', ...rest })
  t.match(found(records, 'not its own'), { 'tenant.id': 'acme', tier: 'gold', deep: { tier: 1 }, ...rest })
  t.match(found(records, 'parsed'), { 'tenant.id': 'acme', tier: 'gold', zones: 'none' })
  t.match(found(records, 'long'), { 'tenant.id': 'acme', tier: 'gold', ...rest })
})

test('records copy them within their own limits, and the span keeps its values', async (t) => {
  process.env.OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT = '8'
  process.env.OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT = '4'
  t.teardown(() => { for (const name of Object.keys(process.env)) if (name.startsWith('OTEL_LOGRECORD_')) delete process.env[name] })
  const { app, exported } = await loggingApp(t, {
    trace: { inheritAttributes: ['long', 'zones'], attributes: { long: 'x'.repeat(20), zones: ['y'.repeat(20)] } },
    routes: (app) => app.get('/', async ({ log, trace }) => {
      log.info('short')
      log.info({ a: 1, b: 2 }, 'full')
      const { long, zones } = trace.span.attributes
      return { long, zones }
    })
  })
  const values = (await app.inject('/')).json()
  const records = await exported()
  t.match(found(records, 'short'), { long: 'x'.repeat(8), zones: ['y'.repeat(8)] })
  const full = records.find(({ body }) => body === 'full')
  t.equal(Object.keys(full.attributes).length, 4)
  t.ok(full.droppedAttributesCount > 0)
  t.same(values, { long: 'x'.repeat(20), zones: ['y'.repeat(20)] })
})

test('held lines have the attributes from when they were written', async (t) => {
  const { app, exported } = await loggingApp(t, {
    trace: { inheritAttributes },
    logs: { export: true, buffer: 'debug' },
    routes: (app) => app.get('/', async ({ log, trace }) => {
      log.debug('before')
      trace.span.setAttribute('tenant.id', 'acme')
      log.debug('after')
      throw new Error('no')
    })
  })
  await app.inject('/')
  const records = await exported()
  t.match(found(records, 'before'), { 'tenant.id': undefined, buffered: true })
  t.match(found(records, 'after'), { 'tenant.id': 'acme', buffered: true })
})

test('exceptions as log records have them', async (t) => {
  process.env.OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN = 'logs'
  t.teardown(() => { delete process.env.OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN })
  const { app, exported } = await loggingApp(t, {
    trace: { inheritAttributes, attributes: { 'tenant.id': 'acme' } },
    routes: (app) => app.get('/', async ({ trace }) => { trace.withSpan('step', () => { throw new Error('in a step') }) })
  })
  await app.inject('/')
  const exceptions = (await exported()).filter(({ eventName }) => eventName === 'exception')
  t.ok(exceptions.length > 1)
  for (const { attributes } of exceptions) t.match(attributes, { 'tenant.id': 'acme', 'exception.message': 'in a step' })
})

test('collectors and standard output have the same attributes', { skip: without('testing') }, async (t) => {
  const collector = testing.createCollector()
  const { app } = await loggingApp(t, {
    trace: { exporter: undefined, spanProcessors: [collector], inheritAttributes, attributes: { 'tenant.id': 'acme', tier: 'gold' } },
    routes: (app) => app.get('/', async ({ log }) => { log.info({ tier: 'mine' }, 'hello') })
  })
  await app.inject('/')
  const { attributes } = (await collector.logs()).find(({ body }) => body === 'hello')
  t.match(attributes, { 'tenant.id': 'acme', tier: 'mine' })
})

test('requests without a span have no attributes to inherit', async (t) => {
  const { app, exported } = await loggingApp(t, {
    trace: { sampler: 'always_off', inheritAttributes, attributes: { 'tenant.id': 'acme' } },
    routes: (app) => app.get('/', async ({ log }) => { log.error('no') })
  })
  await app.inject('/')
  t.notOk('tenant.id' in found(await exported(), 'no'))
})
