'use strict'

const { test } = require('tap')
const Fastify = require('fastify')
const { routeContextOf } = require('../../lib/fastify/routes')

test('if a version of Fastify keeps a route elsewhere, its public object is used', async (t) => {
  const routeOptions = { config: { url: '/' } }
  t.equal(routeContextOf({ routeOptions }), routeOptions)
})

test('a request without a config does not decide which symbol other requests use', async (t) => {
  const [kOther, kContext] = [Symbol('other'), Symbol('context')]
  const bare = { [kOther]: {}, routeOptions: {} }
  t.equal(routeContextOf(bare), bare.routeOptions)
  const context = { config: {} }
  t.equal(routeContextOf({ [kOther]: {}, [kContext]: context, routeOptions: { config: context.config } }), context)
})

test('a route is found by its public properties, however it was declared', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.get('/:id', { config: { own: true } }, same)
  app.register(async (scope) => { scope.get('/nested', same) }, { prefix: '/in' })
  app.setNotFoundHandler(same)

  for (const url of ['/7', '/in/nested', '/nowhere/at/all']) t.equal((await app.inject(url)).body, 'same', url)

  async function same (request) {
    return routeContextOf(request).config === request.routeOptions.config ? 'same' : 'another'
  }
})
