'use strict'

const { test } = require('tap')
const { ended, directoryOf, sinkFor, tree, promised } = require('../support/examples')

test('a process that ends with its last answer has delivered the spans of each invocation', async (t) => {
  const { sink, endpoint } = await sinkFor(t)
  const { code, output } = await ended('start', directoryOf('serverless'), endpoint)
  t.equal(code, 0, output)
  t.ok(output.trimEnd().endsWith(promised('serverless')), output)
  t.equal(tree(sink.spans), Array(2).fill('SERVER GET /orders/:id\n  INTERNAL load order').join('\n'))
  const requests = sink.spans.filter(({ kind }) => kind === 'SERVER').map(({ attributes }) => [attributes['faas.invocation_id'], attributes['faas.coldstart']])
  t.same(requests.sort(), [['invocation-1', true], ['invocation-2', false]])
})
