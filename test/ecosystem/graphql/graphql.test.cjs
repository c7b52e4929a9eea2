'use strict'

// GraphQL servers on Fastify: Apollo Server with its Fastify integration, and NestJS with mercurius and with Apollo. Resolvers run in the
// request's context, their calls are children of the request, and the attributes from docs/outbound.md are on the request's span.

require('reflect-metadata')
const assert = require('node:assert/strict')
const { createServer } = require('node:http')
const { test } = require('node:test')
const { ApolloServer } = require('@apollo/server')
const { default: fastifyApollo, fastifyApolloDrainPlugin } = require('@as-integrations/fastify')
const { ApolloDriver } = require('@nestjs/apollo')
const { Catch, Module } = require('@nestjs/common')
const { NestFactory } = require('@nestjs/core')
const { Args, GraphQLModule, Query, Resolver } = require('@nestjs/graphql')
const { MercuriusDriver } = require('@nestjs/mercurius')
const { FastifyAdapter } = require('@nestjs/platform-fastify')
const fastify = require('fastify')
const lightTrace = require('light-trace')
const { createCollector } = require('light-trace/testing')
const { docsCode } = require('../../test/support/ecosystem.js')

const [filter] = docsCode('recipes.md', 'GraphQL: mercurius, Apollo Server, NestJS', 'js')
const AllErrors = new Function('lightTrace', 'Catch', `${filter}\nCatch()(AllErrors)\nreturn AllErrors`)(lightTrace, Catch) // eslint-disable-line no-new-func
const [mercuriusHooks, apolloPlugin] = docsCode('outbound.md', 'GraphQL 16: mercurius, Apollo Server', 'js')
const addHook = new Function('app', mercuriusHooks.split(/^(?=app\.graphql\.addHook\('onRes)/m)[0]) // eslint-disable-line no-new-func
const tracing = new Function('lightTrace', `${apolloPlugin}\nreturn tracing`)(lightTrace) // eslint-disable-line no-new-func

const typeDefs = 'type Query { stock(id: Int!): String, broken: String }'

test('Apollo Server with @as-integrations/fastify', async (t) => {
  const call = await startStock(t)
  const collector = createCollector()
  const app = fastify()
  const apollo = new ApolloServer({ typeDefs, resolvers: { Query: { stock: (_, { id }) => call(id), broken } }, plugins: [fastifyApolloDrainPlugin(app), tracing] })
  await apollo.start()
  t.after(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector] })
  await app.register(fastifyApollo(apollo))
  await check(app, collector)
})

for (const [name, driver, options, prepare] of [
  ['mercurius', MercuriusDriver, {}, (app) => addHook(app)],
  ['Apollo', ApolloDriver, { plugins: [tracing] }, () => {}]
]) {
  test(`GraphQL in NestJS, with ${name}`, async (t) => {
    const call = await startStock(t)
    const collector = createCollector()
    const adapter = new FastifyAdapter()
    await adapter.getInstance().register(lightTrace, { spanProcessors: [collector] })
    const app = await NestFactory.create(appModule(call, GraphQLModule.forRoot({ driver, typeDefs, path: '/graphql', ...options })), adapter, { logger: false })
    t.after(() => app.close())
    if (driver === MercuriusDriver) app.useGlobalFilters(new AllErrors())
    await app.init()
    prepare(adapter.getInstance())
    await check(app, collector)
  })
}

async function check (app, collector) {
  const ask = async (payload) => JSON.parse((await app.inject({ method: 'POST', url: '/graphql', payload })).body)
  assert.deepEqual((await ask({ query: 'query Stock { a: stock(id: 7) b: stock(id: 8) }', operationName: 'Stock' })).data, { a: 'many', b: 'many' })
  assert.equal((await ask({ query: '{ broken }' })).data.broken, null)
  const [stock, ...rest] = await collector.spans()
  assert.equal(`${stock.kind} ${stock.name} ${stock.attributes['graphql.operation.type']} ${stock.attributes['graphql.operation.name']}`, 'SERVER POST /graphql query Stock')
  assert.deepEqual(rest.slice(0, 2).map(({ kind, parentSpanId }) => [kind, parentSpanId]), [['CLIENT', stock.spanId], ['CLIENT', stock.spanId]])
  const [failed, ...more] = rest.slice(2)
  assert.deepEqual(more, [])
  // GraphQL answers errors with status 200, so the span has the exception but not the status ERROR.
  assert.equal(`${failed.name} ${failed.status.code} ${failed.attributes['http.response.status_code']}`, 'POST /graphql UNSET 200')
  assert.deepEqual(failed.events.map(({ attributes }) => `${attributes['exception.type']}: ${attributes['exception.message']}`), ['RangeError: no such stock'])
}

/** A service that resolvers call. */
async function startStock (t) {
  const server = createServer((request, response) => response.end('many'))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => { server.closeAllConnections(); server.close() })
  return async (id) => (await fetch(`http://127.0.0.1:${server.address().port}/${id}`)).text()
}

async function broken () {
  assert.ok(lightTrace.current())
  throw new RangeError('no such stock')
}

// Decorators are applied by hand, so that no compiler is needed.
function appModule (call, graphql) {
  class Stock {
    stock (id) { return call(id) }
    broken () { return broken() }
  }
  for (const name of ['stock', 'broken']) Query(name)(Stock.prototype, name, Object.getOwnPropertyDescriptor(Stock.prototype, name))
  Args('id')(Stock.prototype, 'stock', 0)
  Resolver()(Stock)
  class App {}
  Module({ imports: [graphql], providers: [Stock] })(App)
  return App
}
