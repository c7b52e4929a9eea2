'use strict'

// The reason for a 4xx answer: the thrown error is on the span, but the span's status is not ERROR.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

class Taken extends Error { name = 'Taken'; statusCode = 409 }

function routes (app) {
  app.get('/taken', async () => { throw new Taken('the name is taken') })
  app.get('/answered', async (request, reply) => {
    request.trace.fail(new Taken('said by the app'))
    return reply.code(409).send()
  })
  app.get('/named', async (request) => {
    request.trace.span.setAttribute('x', 'error.type')
    throw new Taken('the name is taken')
  })
  app.get('/plain', async (request, reply) => reply.code(404).send())
  app.get('/caught', async (request, reply) => {
    try { throw new Taken('nobody sees it') } catch { return 'ok' }
  })
  const schema = { body: { type: 'object', required: ['name'], properties: { name: { type: 'string' }, age: { enum: [1, 2] } } } }
  app.post('/checked', { schema }, async () => 'ok')
  const validatorCompiler = () => () => ({ error: Object.assign(new Error('SECRET is no date'), { validation: [{ path: ['at', 0], code: 'invalid_date', message: 'SECRET' }] }) })
  app.post('/other', { schema, validatorCompiler }, async () => 'ok')
}

async function spanOf (t, request, trace) {
  const { app, collector } = await tracedApp(t, { routes, trace, listen: false })
  await app.inject(request)
  const [span] = await collector.spans()
  return { ...span, event: span.events[0]?.attributes }
}

test('a thrown 4xx records the exception and error.type, and leaves the status unset', async (t) => {
  for (const [url, message] of [['/taken', 'the name is taken'], ['/answered', 'said by the app']]) {
    const { status, attributes, event } = await spanOf(t, url)
    t.notMatch(status, /ERROR/, url)
    t.match(attributes, { 'http.response.status_code': 409, 'error.type': 'Taken' })
    t.match(event, { 'exception.type': 'Taken', 'exception.message': message, 'exception.stacktrace': /client-errors/ })
  }
})

test('a 4xx without a thrown error, and an error that the application has handled, record nothing', async (t) => {
  for (const url of ['/plain', '/nowhere', '/caught']) {
    const { attributes, event } = await spanOf(t, url)
    t.notOk('error.type' in attributes, url)
    t.equal(event, undefined)
  }
})

test('clientErrors: false records nothing of them', async (t) => {
  const { status, attributes, event } = await spanOf(t, '/taken', { spans: { clientErrors: false } })
  t.notMatch(status, /ERROR/)
  t.notOk('error.type' in attributes)
  t.equal(event, undefined)
})

test('error.type has a place within the limit of attributes', async (t) => {
  const { attributes } = await spanOf(t, '/taken', { attributes: () => ({ a: 1, b: 2 }), limits: { attributes: 12 } })
  t.equal(attributes['error.type'], 'Taken')
})

test('a request that fails validation records the part, the path and the rule, never a value', async (t) => {
  const missing = await spanOf(t, { method: 'POST', url: '/checked', payload: { age: 1 } })
  t.match(missing.event, { 'exception.type': 'FST_ERR_VALIDATION', 'exception.message': 'body/name required' })
  const wrong = await spanOf(t, { method: 'POST', url: '/checked', payload: { name: 'SECRET', age: 'SECRET' } })
  t.equal(wrong.event['exception.message'], 'body/age enum')
  const other = await spanOf(t, { method: 'POST', url: '/other', payload: {} })
  t.equal(other.event['exception.message'], 'body/at/0 invalid_date')
  for (const { event } of [missing, wrong, other]) t.notMatch(JSON.stringify(event), /SECRET|stacktrace/)
})

test('an attribute whose value is error.type is not taken for error.type', async (t) => {
  for (const limits of [{}, { attributes: 12 }]) {
    const { attributes } = await spanOf(t, '/named', { attributes: () => ({ a: 1, b: 2 }), limits })
    t.equal(attributes['error.type'], 'Taken', JSON.stringify(limits))
  }
})
