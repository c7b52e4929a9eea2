'use strict'

const fastify = require('fastify')
const { test } = require('tap')
const lightTrace = require('../..')

test('invalid options reject the registration with their code', async (t) => {
  const app = newApp(t)
  await t.rejects(async () => { await app.register(lightTrace, { samplr: 1 }) }, { code: 'LT_ERR_OPTION_UNKNOWN', message: /`sampler`/ })

  const later = newApp(t)
  later.register(lightTrace, { sampler: 'foo' })
  await t.rejects(later.ready(), { code: 'LT_ERR_OPTION_INVALID', message: /'foo'/ })
})

test('an invalid route option throws when the route is added', async (t) => {
  const app = newApp(t)
  await app.register(lightTrace, { exporter: 'none' })
  t.throws(() => app.get('/', { config: { trace: { atributes: {} } } }, async () => {}), { code: 'LT_ERR_OPTION_UNKNOWN' })
})

test('options that Fastify itself passes to a plugin are not unknown options', async (t) => {
  const app = newApp(t)
  await app.register(lightTrace, { exporter: 'none', prefix: '/api', logLevel: 'warn', logSerializers: {} })
  const byFunction = newApp(t)
  await byFunction.register(lightTrace, () => ({ exporter: 'none' }))
  t.equal(byFunction.lightTrace.stats().spans.started, 0)
})

test('an invalid variable does not stop the app, and is logged once in the app\'s log', async (t) => {
  t.teardown(() => { delete process.env.OTEL_TRACES_SAMPLER })
  process.env.OTEL_TRACES_SAMPLER = 'sometimes\u001b[31m'
  const lines = []
  const app = newApp(t, { logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  await app.register(lightTrace, { exporter: 'none' })
  await app.ready()
  t.match(lines, [{ level: 40, code: 'LT_WARN_ENV', msg: /OTEL_TRACES_SAMPLER.*'sometimes'/ }])
  t.equal(lines.length, 1)
})

function newApp (t, options) {
  const app = fastify(options)
  t.teardown(() => app.close())
  return app
}
