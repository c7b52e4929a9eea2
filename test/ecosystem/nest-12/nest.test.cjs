'use strict'

// NestJS on its Fastify adapter, as in docs/recipes.md. Decorators are applied by hand, so that no compiler is needed.

require('reflect-metadata')
const assert = require('node:assert/strict')
const { test } = require('node:test')
const { Catch, Controller, Get, Module, Param } = require('@nestjs/common')
const { BaseExceptionFilter, NestFactory } = require('@nestjs/core')
const { FastifyAdapter } = require('@nestjs/platform-fastify')
const lightTrace = require('light-trace')
const { createCollector } = require('light-trace/testing')

test('routes have one span with the route’s name, and providers read the request’s store', async (t) => {
  const { app, collector } = await start(t)
  const { body } = await app.inject('/cats/7')
  assert.deepEqual(JSON.parse(body), { id: '7', inMiddleware: true, inGuard: true, sameTrace: true })
  assert.equal(await collector.tree(), 'SERVER GET /cats/:id\n  INTERNAL load cat')
})

test('request.trace.fail records an exception that a filter answers', async (t) => {
  const { app, collector } = await start(t)
  assert.equal((await app.inject('/cats/broken/7')).statusCode, 500)
  const [span] = await collector.spans()
  assert.equal(span.status.code, 'ERROR')
  assert.equal(span.attributes['error.type'], 'RangeError')
  assert.deepEqual(span.events.map(({ name, attributes }) => [name, attributes['exception.message']]), [['exception', 'no such cat']])
})

test('an unknown path is one span without a route', async (t) => {
  const { app, collector } = await start(t)
  assert.equal((await app.inject('/dogs')).statusCode, 404)
  const [span, ...more] = await collector.spans()
  assert.deepEqual(more, [])
  assert.equal(span.attributes['http.response.status_code'], 404)
})

test('handlers have spans that end before the hooks of the answer, since Nest’s handlers run until it is sent', async (t) => {
  const { app, collector } = await start(t, { spans: { handler: true, hooks: ['onSend'] } })
  let ended
  app.getHttpAdapter().getInstance().addHook('onSend', async () => { ended = app.getHttpAdapter().getInstance().lightTrace.stats().spans.ended })
  await app.inject('/cats/7')
  assert.equal(await collector.tree(), 'SERVER GET /cats/:id\n  INTERNAL handler\n    INTERNAL load cat\n  INTERNAL onSend')
  assert.equal(ended, 2)
})

test('registered after NestFactory.create(), as in docs/context.md, only middleware has no context', async (t) => {
  const { app, collector } = await start(t, { isLate: true })
  const { body } = await app.inject('/cats/7')
  assert.deepEqual(JSON.parse(body), { id: '7', inMiddleware: false, inGuard: true, sameTrace: true })
  assert.equal(await collector.tree(), 'SERVER GET /cats/:id\n  INTERNAL load cat')
})

async function start (t, { isLate = false, ...options } = {}) {
  const collector = createCollector()
  const adapter = new FastifyAdapter()
  if (!isLate) await adapter.getInstance().register(lightTrace, { spanProcessors: [collector], ...options }) // before Nest adds its own hooks
  const app = await NestFactory.create(appModule(), adapter, { logger: false })
  if (isLate) await app.register(lightTrace, { spanProcessors: [collector] })
  app.use((request, response, next) => {
    lightTrace.current()?.set('inMiddleware', true)
    next()
  })
  app.useGlobalGuards({ canActivate: () => { lightTrace.current()?.set('inGuard', true); return true } })
  app.useGlobalFilters(new AllErrors(app.getHttpAdapter()))
  await app.init()
  t.after(() => app.close())
  return { app, collector }
}

class AllErrors extends BaseExceptionFilter {
  catch (error, host) {
    if (host.getType() === 'http') host.switchToHttp().getRequest().trace.fail(error)
    super.catch(error, host)
  }
}
Catch()(AllErrors)

class Cats {
  one (id) {
    const { traceId } = lightTrace.current()
    return lightTrace.current().withSpan('load cat', async () => ({
      id, inMiddleware: lightTrace.current().get('inMiddleware') ?? false, inGuard: lightTrace.current().get('inGuard') ?? false, sameTrace: lightTrace.current().traceId === traceId
    }))
  }

  broken () { throw new RangeError('no such cat') }
}

function appModule () {
  decorate(Get('broken/:id'), 'broken')
  decorate(Get(':id'), 'one')
  Param('id')(Cats.prototype, 'one', 0)
  Controller('cats')(Cats)
  class App {}
  Module({ controllers: [Cats] })(App)
  return App
}

function decorate (decorator, name) {
  decorator(Cats.prototype, name, Object.getOwnPropertyDescriptor(Cats.prototype, name))
}
