'use strict'

const { test } = require('tap')
const { byStart, startExample, sinkFor, tree, promised } = require('../support/examples')

test('NestJS spans have the routes of the controllers, the steps of the providers and the errors of the filter', async (t) => {
  const { sink, endpoint } = await sinkFor(t)
  const example = startExample(t, 'nestjs', { ...endpoint, PORT: '0' })
  const [, origin] = await example.output(/Listening at (http:\S+)/)
  const statuses = []
  for (const id of ['1', '13', '9', 'x']) statuses.push((await fetch(`${origin}/cats/${id}`)).status)
  t.same(statuses, [200, 500, 404, 400])

  const spans = [...await sink.waitFor(7)].sort(byStart)
  const of = (...wanted) => spans.filter(({ traceId }) => wanted.includes(requests.findIndex((request) => request.traceId === traceId)))
  const requests = spans.filter(({ kind }) => kind === 'SERVER')
  t.equal(tree(of(0, 1)), promised('nestjs'))
  t.same(requests.map(({ attributes }) => attributes['http.route']), Array(4).fill('/cats/:id'))
  t.same(requests.map(({ events }) => events.map(({ attributes }) => attributes['exception.message'])[0]),
    [undefined, 'a black cat', 'no such cat', 'Validation failed (numeric string is expected)'])
  await example.stop()
})
