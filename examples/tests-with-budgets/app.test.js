'use strict'

const assert = require('node:assert')
const { once } = require('node:events')
const http = require('node:http')
const { test } = require('node:test')
const { createCollector } = require('light-trace/testing')
const { buildApp } = require('./app')

// A budget in a test: it fails if the handler makes more calls than allowed.
test('the stock is asked once', async (t) => {
  const collector = createCollector()
  const app = await buildApp({ stock: await startStock(t), spanProcessors: [collector] })
  t.after(() => app.close())
  await app.inject('/stock')
  await collector.check({ repeats: 1, calls: { http: 1 }, afterResponse: false, open: false })
})

// An ordinary test: `npx light-trace --save` records what the application does in it.
test('an order has its items', async (t) => {
  const app = await buildApp({ stock: await startStock(t) })
  t.after(() => app.close())
  assert.strictEqual((await app.inject('/orders/7')).json().length, 3)
})

async function startStock (t) {
  const server = http.createServer((request, response) => response.end('{}')).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${server.address().port}`
}
