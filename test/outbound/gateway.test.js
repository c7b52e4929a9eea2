'use strict'

// Fastify as a gateway. Requests that @fastify/reply-from and @fastify/http-proxy forward carry the client span, although these plugins
// copy the caller's headers, including its traceparent.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { collectorFor } = require('../support/collector')

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const TREE = ['SERVER GET /shop/:id', '  CLIENT GET', '    SERVER GET /items/:id'].join('\n')

const gateways = {
  '@fastify/reply-from': async (app, upstream) => {
    await app.register(require('@fastify/reply-from'), { base: upstream, undici: { connections: 2 } })
    app.get('/shop/:id', (request, reply) => reply.from(`/items/${request.params.id}`))
  },
  '@fastify/reply-from over node:http': async (app, upstream) => {
    await app.register(require('@fastify/reply-from'), { base: upstream, http: {} })
    app.get('/shop/:id', (request, reply) => reply.from(`/items/${request.params.id}`))
  }
}

const [major] = process.versions.node.split('.').map(Number)

for (const [name, register] of Object.entries(gateways)) {
  for (const caller of ['no caller', 'a sampled caller', 'a caller that is not trusted']) {
    const skip = major === 20 && name.endsWith('http') ? 'node:http cannot be injected into on this Node' : false
    test(`${name}, ${caller}: one server span, one client span, and the next server span below it`, { skip }, async (t) => {
      const { collector, options } = await collectorFor(t)
      const next = await tracedApp(t, {
        trace: options,
        routes: (app) => app.get('/items/:id', async ({ headers }) => headers)
      })
      const gateway = await tracedApp(t, {
        trace: { ...options, trustIncoming: caller !== 'a caller that is not trusted' },
        routes: (app) => register(app, next.origin)
      })
      const headers = caller === 'no caller' ? {} : { traceparent: PARENT, tracestate: 'v=1', baggage: 'tenant=7' }
      const answers = await Promise.all([1, 2, 3, 4].map(async (id) => (await fetch(`${gateway.origin}/shop/${id}`, { headers })).json()))
      const spans = await collector.spans()
      t.equal(spans.length, 12)
      t.equal(await collector.tree(), Array(4).fill(TREE).join('\n'))
      if (caller === 'no caller') return
      for (const answer of answers) t.equal(answer.baggage, caller === 'a sampled caller' ? 'tenant=7' : undefined)
      t.equal(spans.every(({ traceId }) => PARENT.includes(traceId)), caller === 'a sampled caller')
    })
  }
}

test('@fastify/http-proxy: the next service\'s span is below the client span', async (t) => {
  const { collector, options } = await collectorFor(t)
  const next = await tracedApp(t, {
    trace: options,
    routes: (app) => app.post('/items', async ({ body }) => body)
  })
  const gateway = await tracedApp(t, {
    trace: options,
    routes: (app) => app.register(require('@fastify/http-proxy'), { upstream: next.origin, prefix: '/api' })
  })
  const response = await fetch(`${gateway.origin}/api/items`, {
    method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json', traceparent: PARENT }
  })
  t.same(await response.json(), { a: 1 })
  t.match(await collector.tree(), /^SERVER POST \/api\/\*\n {2}CLIENT POST\n {4}SERVER POST \/items$/)
})

test('a gateway with OTEL_PROPAGATORS: the next service is below the client span, and the app\'s own headers are kept', async (t) => {
  process.env.OTEL_PROPAGATORS = 'tracecontext'
  t.teardown(() => { delete process.env.OTEL_PROPAGATORS })
  const { collector, options } = await collectorFor(t)
  const next = await tracedApp(t, {
    trace: options,
    routes: (app) => app.get('/items/:id', async ({ headers }) => headers)
  })
  const OWN = '00-11111111111111111111111111111111-2222222222222222-01'
  const gateway = await tracedApp(t, {
    trace: options,
    routes: async (app) => {
      await gateways['@fastify/reply-from'](app, next.origin)
      app.get('/own', async () => (await fetch(`${next.origin}/items/2`, { headers: { traceparent: OWN } })).json())
    }
  })
  await (await fetch(`${gateway.origin}/shop/1`, { headers: { traceparent: PARENT } })).text()
  t.equal(await collector.tree(), TREE)
  t.equal((await (await fetch(`${gateway.origin}/own`)).json()).traceparent, OWN)
})
