'use strict'

// An error has the same type on its span, on the records of its lines and in `error.type`, unless the line hides it.
// Feature: logs

const { test } = require('tap')
const { loggingApp } = require('../support/logging-app')
const { testing } = require('../support/collector')

class NotFound extends Error {}
class Größe extends TypeError {}
class Quota extends Error { name = 'QuotaError' }
class Getter extends Error { get name () { return 'GetterError' } }
class Coded extends Error { get code () { return 'E_CODED' } }
class Shared extends Error {}
Shared.prototype.name = 'SharedError'
class Plain extends Error {
  constructor (message) {
    super(message)
    this.name = 'Error'
  }
}

const SHAPES = [
  ['TypeError', () => new TypeError('no')],
  ['NotFound', () => new NotFound('a class without a name')],
  ['Größe', () => new Größe('the same of another error, and no ASCII')],
  ['QuotaError', () => new Quota('a name as a field')],
  ['GetterError', () => new Getter('a name by a getter')],
  ['SharedError', () => new Shared('a name on the prototype')],
  ['Own', () => Object.assign(new Error('a name that was set'), { name: 'Own' })],
  ['Error', () => new Plain('that of a built-in class, set on purpose')],
  ['Error', () => new (class extends Error {})('a class without any name')],
  ['E_NO', () => Object.assign(new NotFound('a code'), { code: 'E_NO' })],
  ['E_CODED', () => new Coded('a code by a getter, which lines do not have')],
  ['E_NOT_ENUMERABLE', () => Object.defineProperty(new Error('the same'), 'code', { value: 'E_NOT_ENUMERABLE' })],
  ['Error', () => Object.assign(new Error('a code that is a number'), { code: 5 })],
  ['NotFound', () => Object.assign(new NotFound('an empty code'), { code: '' })],
  ['E'.repeat(128), () => Object.assign(new Error('a long code'), { code: 'E'.repeat(200) })],
  ['Ö'.repeat(128), () => Object.assign(new Error('a long name'), { name: 'Ö'.repeat(200) })],
  ['AbortError', () => new DOMException('no class of its own', 'AbortError')],
  ['AggregateError', () => new AggregateError([new NotFound('one')], 'several')],
  ['E_"QUOTED"\\\n', () => Object.assign(new Error('a code that JSON escapes'), { code: 'E_"QUOTED"\\\n' })],
  ['object', () => ({ message: 'no error' })]
]

function routes (app) {
  app.get('/:n', async ({ log, params }) => {
    const [, make] = SHAPES[params.n]
    const error = make()
    log.error({ err: error }, 'alone')
    log.error({ order: 7, err: error }, 'beside others')
    log.error({ err: error }, 'so that the line is parsed: \u0001')
    log.debug({ err: error }, 'held')
    throw error
  })
}

const isOfError = ({ attributes }) => 'exception.type' in attributes

test('a span and a record have the same type of an error, whichever code writes the record', async (t) => {
  const { app, sink, exported } = await loggingApp(t, { logs: { export: true, buffer: 'debug' }, routes })
  for (const [n, [type]] of SHAPES.entries()) {
    await app.inject(`/${n}`)
    const records = (await exported()).splice(0).filter(isOfError)
    const [span] = sink.requests.splice(0).flatMap(({ spans = [] }) => spans)
    t.equal(span.events.find(({ name }) => name === 'exception').attributes['exception.type'], type, type)
    t.same(records.map(({ attributes }) => attributes['exception.type']), Array(5).fill(type), `${type} on Fastify's line, too`)
    t.ok(records.some(({ attributes }) => attributes.buffered), 'and on a line that was held')
    if (!type.startsWith('E')) t.equal(span.attributes['error.type'], type)
  }
})

test('a collector of light-trace/testing has the same type', { skip: testing === undefined && 'without testing' }, async (t) => {
  const collector = testing.createCollector()
  const { app } = await loggingApp(t, { trace: { exporter: undefined, spanProcessors: [collector] }, routes })
  for (const [n, [type]] of SHAPES.entries()) {
    await app.inject(`/${n}`)
    const [span] = await collector.spans()
    t.equal(span.events[0].attributes['exception.type'], type)
    t.same((await collector.logs()).filter(isOfError).map(({ attributes }) => attributes['exception.type']), Array(4).fill(type))
    collector.reset()
  }
})

test('if the type differs from the line\'s, the record has both', async (t) => {
  const { app, exported } = await loggingApp(t)
  app.log.error(Object.assign(new TypeError('no'), { name: 'Own' }))
  app.log.error(new TypeError('no'))
  t.match((await exported()).map(({ attributes }) => attributes), [
    { 'exception.type': 'Own', 'err.type': 'TypeError', 'err.name': 'Own' },
    { 'exception.type': 'TypeError', 'err.type': undefined }
  ])
})

test('what a serializer or redaction hides is not read from the error', async (t) => {
  const SECRET = 'E_HUNTER2'
  const error = (own) => Object.assign(new NotFound('no'), own)
  const hiding = [
    [{ serializers: { err: ({ message }) => ({ type: 'hidden', message }) } }, { code: SECRET }, 'hidden'],
    [{ serializers: { err: ({ message }) => ({ message }) } }, { code: SECRET }, undefined],
    [{ redact: ['err.code'] }, { code: SECRET }, '[Redacted]'],
    [{ redact: { paths: ['err.code'], remove: true } }, { code: SECRET }, 'NotFound'],
    [{ redact: { paths: ['err.name'], remove: true } }, { name: SECRET }, 'NotFound'],
    [{ redact: ['err.type'] }, { code: 'E_SHOWN' }, 'E_SHOWN'],
    [{ redact: ['err.type'] }, {}, '[Redacted]'],
    [{ redact: ['err'] }, { code: SECRET }, undefined]
  ]
  for (const [logger, own, type] of hiding) {
    const { app, lines, exported } = await loggingApp(t, { logger })
    app.log.error({ err: error(own) }, 'no')
    const [{ attributes }] = await exported()
    t.equal(attributes['exception.type'], type, lines[0])
  }
})

test('an error in a logger\'s bindings, or an error as text, is recorded as in the line', async (t) => {
  const { app, exported } = await loggingApp(t)
  app.log.child({ err: new NotFound('no') }).warn('of a child')
  app.log.warn({ err: 'text' }, 'a text')
  app.log.warn({ err: null }, 'nothing')
  app.log.warn({ err: { stack: 5 } }, 'an object')
  app.log.warn('plain')
  t.same((await exported()).map(({ attributes }) => attributes['exception.type']), ['NotFound', undefined, undefined, undefined, undefined])
})

test('an error whose members throw has a type, too', async (t) => {
  const throwing = { get () { throw new Error('mine') } }
  const hostile = [
    ['Error', () => Object.defineProperties(new Error('no'), { code: throwing, constructor: throwing })],
    ['object', () => new Proxy({}, { get () { throw new Error('mine') }, getOwnPropertyDescriptor () { throw new Error('mine') }, ownKeys () { throw new Error('mine') } })],
    ['Error', () => Object.defineProperty(new Error('no'), 'constructor', { value: { name: Symbol('mine') } })]
  ]
  const { app, sink } = await loggingApp(t, { logs: true, routes: (app) => app.get('/:n', async ({ params, trace }) => { trace.span.recordException(hostile[params.n][1]()) }) })
  for (const [n, [type]] of hostile.entries()) {
    t.equal((await app.inject(`/${n}`)).statusCode, 200)
    await app.lightTrace.flush()
    t.equal(sink.requests.flatMap(({ spans = [] }) => spans).at(-1).events[0].attributes['exception.type'], type)
  }
})
