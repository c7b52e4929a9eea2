'use strict'

// graphql 16 publishes no channels. This tests the code that docs/outbound.md shows for mercurius and Apollo, which uses their documented
// hooks.

const { test } = require('tap')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')

const QUERIES = [
  { query: 'query Q { user(id: 7) }', operationName: 'Q' },
  { query: '{ broken }' },
  { query: 'query A { user(id: 1) } query B { broken }', operationName: 'B' }
]

async function spansOf (app, collector) {
  for (const payload of QUERIES) await app.inject({ method: 'POST', url: '/graphql', payload })
  return (await collector.spans()).map(({ attributes, events }) => [attributes['graphql.operation.type'], attributes['graphql.operation.name'], events[0]?.attributes['exception.message']])
}

const EXPECTED = [['query', 'Q', undefined], ['query', undefined, 'no'], ['query', 'B', 'no']]

test('mercurius: operation and errors are on the request\'s span', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: async (app) => {
      await app.register(require('mercurius'), {
        schema: 'type Query { user(id: Int): String, broken: String }',
        resolvers: { Query: { user: async () => 'x', broken: async () => { throw new TypeError('no') } } }
      })
      app.graphql.addHook('preExecution', async (schema, document, { reply }) => {
        const { trace, body } = reply.request
        const operations = document.definitions.filter(({ kind }) => kind === 'OperationDefinition')
        const { operation, name } = operations.find(({ name }) => name?.value === body?.operationName) ?? operations[0]
        trace.span.setAttribute('graphql.operation.type', operation)
        if (name !== undefined) trace.span.setAttribute('graphql.operation.name', name.value)
      })
      app.graphql.addHook('onResolution', async ({ errors }, { reply }) => {
        if (errors?.length > 0) reply.request.trace.fail(errors[0].originalError ?? errors[0])
      })
    }
  })
  t.same(await spansOf(app, collector), EXPECTED)
})

test('Apollo Server: operation and errors are on the request\'s span', async (t) => {
  const { ApolloServer } = require('@apollo/server')
  const tracing = {
    async requestDidStart () {
      const trace = lightTrace.current()
      return {
        async didResolveOperation ({ operation, operationName }) {
          trace?.span.setAttribute('graphql.operation.type', operation.operation)
          if (operationName !== null) trace?.span.setAttribute('graphql.operation.name', operationName)
        },
        async didEncounterErrors ({ errors }) { trace?.fail(errors[0].originalError ?? errors[0]) }
      }
    }
  }
  const server = new ApolloServer({
    typeDefs: 'type Query { user(id: Int): String, broken: String }',
    resolvers: { Query: { user: async () => 'x', broken: async () => { throw new TypeError('no') } } },
    plugins: [tracing]
  })
  await server.start()
  t.teardown(() => server.stop())
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.post('/graphql', async ({ body }) => (await server.executeOperation(body)).body.singleResult)
  })
  t.same(await spansOf(app, collector), EXPECTED)
})
