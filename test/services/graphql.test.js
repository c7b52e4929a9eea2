'use strict'

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

test('graphql 17: an operation and its errors are recorded, and its resolvers if configured', async (t) => {
  const { buildSchema, graphql } = require('graphql17')
  const schema = buildSchema('type Query { user(id: Int, name: String): User } type User { name: String broken: String }')
  const rootValue = { user: async () => ({ name: 'x', broken () { throw new TypeError('no') } }) }
  const treeOf = async (source, channels, more) => {
    const { app, collector } = await tracedApp(t, {
      listen: false,
      trace: { outbound: { channels, ...more } },
      routes: (app) => app.get('/go', async () => graphql({ schema, source, rootValue }))
    })
    await app.inject('/go')
    return { tree: await collector.tree(), spans: await collector.spans() }
  }
  const { tree, spans } = await treeOf('query Q { user(id: 7, name: "secret") { name } }', {})
  t.equal(tree, 'SERVER GET /go\n  SERVER query')
  t.same(spans[1].attributes, { 'graphql.operation.type': 'query', 'graphql.operation.name': 'Q' })
  const asked = await treeOf('query Q { user(id: 7, name: "secret") { name } }', {}, { graphqlDocuments: true })
  t.equal(asked.spans[1].attributes['graphql.document'], 'query Q { user(id: ?, name: ?) { name } }')
  t.match((await treeOf('{ user { broken } }', {})).tree, /SERVER query ERROR error.type=GraphQLError$/)
  t.match((await treeOf('{ user { name } }', { 'graphql:resolve': true })).tree, /INTERNAL resolve Query\.user/)
})
