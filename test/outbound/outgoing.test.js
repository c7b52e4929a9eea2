'use strict'

// Tests that apply to every HTTP client.

const http = require('node:http')
const { once } = require('node:events')
const { test } = require('tap')
const { serving } = require('../support/serving')
const { upstream } = require('../support/upstream')

const clients = {
  http: async (url) => {
    const [response] = await once(http.get(url), 'response')
    response.resume()
    await once(response, 'end')
  },
  undici: async (url) => { await (await fetch(url)).text() }
}

for (const [name, call] of Object.entries(clients)) {
  test(`${name}: without a request, no span is started and no header is injected`, async (t) => {
    const { origin, seen } = await upstream(t)
    const { collector } = await serving(t, () => {})
    await call(origin)
    t.same(await collector.spans(), [])
    t.notOk('traceparent' in seen[0])
  })

  test(`outbound.${name}: false switches its spans and headers off`, async (t) => {
    const { origin, seen } = await upstream(t)
    const { go } = await serving(t, () => call(origin), { trace: { outbound: { [name]: false } } })
    t.same(await go(), [])
    t.notOk('traceparent' in seen[0])
  })
}
