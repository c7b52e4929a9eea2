'use strict'

// A light-trace app and a Python service with OpenTelemetry's SDK share one trace.

const { spawn } = require('node:child_process')
const { join } = require('node:path')
const { test } = require('tap')
const { runApp, eventually } = require('../viewer/command')

// The request passes the service's address. The service needs the viewer's address to start, and the viewer starts together with the app.
const APP = `
const app = require('fastify')()
app.get('/orders/:id', async (request) => ({ left: await (await fetch(request.query.stock + '/items/' + request.params.id)).text() }))
app.listen({ port: 0, host: '127.0.0.1' }).then((address) => console.log('app at ' + address))
`

test('a request through an app and a Python service is one trace', async (t) => {
  const { app, json, viewer } = await runApp(t, { files: { 'app.js': APP } })
  const python = spawn(process.env.LIGHT_TRACE_PYTHON, [join(__dirname, 'stock.py'), `${viewer}/v1/traces`], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => python.kill('SIGKILL'))
  const stock = await new Promise((resolve, reject) => {
    python.stdout.once('data', (text) => resolve(/http:\S+/.exec(text)[0]))
    python.once('exit', (code) => reject(new Error(`Python ended with ${code}`)))
  })
  const answer = await fetch(`${app}/orders/7?stock=${encodeURIComponent(stock)}`)
  t.same(await answer.json(), { left: '3' })
  const { traces } = await eventually(() => json('/api/traces'), ({ traces }) => traces[0]?.spans === 5)
  t.equal(traces.length, 1)
  t.match(traces[0], { route: 'GET /orders/:id', root: true, orphans: 0, errors: 0, services: [{ spans: 3 }, { name: 'stock', spans: 2 }] })
  const { rows, services } = await json(`/api/traces/${traces[0].id}/rows`)
  t.same(rows.map(({ depth, kind, name }) => `${'  '.repeat(depth)}${kind} ${name}`), [
    'SERVER GET /orders/:id',
    '  INTERNAL handler',
    `    CLIENT GET ${new URL(stock).host}/items/7`,
    '      SERVER GET /items/{id}',
    '        INTERNAL count'
  ])
  t.equal(services[rows[4].service], 'stock')
  t.match(rows[4].events, [{ name: 'exception', type: 'KeyError' }])
  const { attributes, scope } = await json(`/api/traces/${traces[0].id}/spans/${rows[4].id}`)
  t.match([attributes, scope], [[{ key: 'tags', value: ['a', 'b'] }], { name: 'stock.py', version: '1.0' }])
  const { exceptions } = await json('/api/exceptions')
  t.match(exceptions, [{ type: 'KeyError', frame: /^File ".*stock\.py", line \d+/, service: 'stock' }])
  const { routes } = await json('/api/routes')
  t.match(routes.map(({ service, route }) => `${service} ${route}`).sort(), [/ GET \/orders\/:id$/, 'stock GET /items/{id}'])
})
