'use strict'

const { test } = require('tap')
const { freePort } = require('../../scripts/free-port')
const { startExample, sinkFor, tree, promised } = require('../support/examples')

const STRANGERS = '4bf92f3577b34da6a3ce929d0e0e4736'

test('a request through two processes is one trace, with a trace id from light-trace', async (t) => {
  const { sink, endpoint } = await sinkFor(t)
  const [shop, stock] = [await freePort(), await freePort()]
  const example = startExample(t, 'two-services', { ...endpoint, PORT: String(shop), STOCK_PORT: String(stock), STOCK_URL: `http://127.0.0.1:${stock}` })
  for (const port of [shop, stock]) await example.output(new RegExp(`Server listening at http://127\\.0\\.0\\.1:${port}`))
  const response = await fetch(`http://127.0.0.1:${shop}/orders/tea`, { headers: { traceparent: `00-${STRANGERS}-00f067aa0ba902b7-01` } })
  t.same(await response.json(), { ordered: true })

  const spans = [...await sink.waitFor(4)]
  t.equal(tree(spans, ({ kind, name, resource }) => `${kind} ${name} ${resource['service.name']}`), promised('two-services').replace(/(\S) {2,}/g, '$1 '))
  t.equal(new Set(spans.map(({ resource }) => resource['service.instance.id'])).size, 2)
  t.notOk(spans.some(({ traceId }) => traceId === STRANGERS))
  t.equal(spans.find(({ name }) => name === 'GET /orders/:item').attributes['stock.left'], 3)

  t.equal((await fetch(`http://127.0.0.1:${shop}/orders/lamp`)).status, 500)
  const failed = (await sink.waitFor(7)).slice(4)
  t.equal(tree(failed), 'SERVER GET /orders/:item ERROR error.type=Error\n  CLIENT GET ERROR error.type=404\n    SERVER GET /stock/:item')
  await example.stop()
})
