'use strict'

const { test } = require('tap')
const { byStart, startExample, sinkFor, tree, promised } = require('../support/examples')

test('a product that is not in Redis is a request with three calls, in one trace', async (t) => {
  const { sink, endpoint } = await sinkFor(t)
  const example = startExample(t, 'postgres-redis', {
    ...endpoint,
    PORT: '0',
    PGHOST: '127.0.0.1',
    PGPORT: process.env.SERVICES_POSTGRESQL_PORT,
    REDIS_URL: `redis://127.0.0.1:${process.env.SERVICES_REDIS_PORT}`
  })
  const [, origin] = await example.output(/Server listening at (http:\/\/127\.0\.0\.1:\d+)/)
  t.same(await get(`${origin}/products/1`), { status: 200, body: { id: 1, name: 'tea' } })
  t.same(await get(`${origin}/products/1`), { status: 200, body: { id: 1, name: 'tea' } })
  t.same(await get(`${origin}/products/9`), { status: 404, body: { error: 'no such product' } })
  await example.stop()

  const [first, second, unknown] = sink.spans.filter(({ kind }) => kind === 'SERVER').sort(byStart).map(({ traceId }) => sink.spans.filter((span) => span.traceId === traceId))
  t.equal(tree(first), promised('postgres-redis'))
  t.equal(tree(second), 'SERVER GET /products/:id\n  CLIENT redis GET')
  t.equal(tree(unknown), 'SERVER GET /products/:id\n  CLIENT redis GET\n  CLIENT postgresql SELECT products')
  t.same(first.filter(({ kind }) => kind === 'CLIENT').sort(byStart).map(({ attributes }) => attributes['db.system.name']), ['redis', 'postgresql', 'redis'])
  t.equal(first.find(({ kind }) => kind === 'SERVER').resource['service.name'], 'shop')
})

async function get (url) {
  const response = await fetch(url)
  return { status: response.status, body: await response.json() }
}
