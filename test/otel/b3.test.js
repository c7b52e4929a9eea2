'use strict'

// Feature: b3
// sdk-interop.js tests OpenTelemetry's own package and its headers.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { tellingLogger } = require('../support/telling-logger')

const PACKAGE = `exports.B3Propagator = class {
  constructor ({ injectEncoding }) { this.name = injectEncoding === 1 ? 'x-b3' : 'b3' }
  extract (context) { return context }
  inject (context, carrier, setter) { setter.set(carrier, this.name, 'written') }
  fields () { return [this.name] }
}`

async function injected (t, propagators) {
  process.env.OTEL_PROPAGATORS = propagators
  t.teardown(() => { delete process.env.OTEL_PROPAGATORS })
  const loggerInstance = tellingLogger()
  const { app } = await tracedApp(t, { listen: false, fastify: { loggerInstance }, routes: (app) => app.get('/', async (request) => request.trace.inject({})) })
  return { headers: Object.keys((await app.inject('/')).json()), logged: loggerInstance.logged }
}

test('without its package, b3 is reported as missing, and the other propagators work', async (t) => {
  const { headers, logged } = await injected(t, 'b3,tracecontext')
  t.same(headers, ['traceparent'])
  t.same(logged, [['LT_WARN_PROPAGATOR', 'OTEL_PROPAGATORS contains b3, which needs the package @opentelemetry/propagator-b3']])
})

test('b3 and b3multi come from the package that the application has', async (t) => {
  const cwd = process.cwd()
  t.teardown(() => process.chdir(cwd))
  process.chdir(t.testdir({ node_modules: { '@opentelemetry': { 'propagator-b3': { 'index.js': PACKAGE } } } }))
  t.same(await injected(t, 'b3'), { headers: ['b3'], logged: [] })
  t.same(await injected(t, 'b3multi,tracecontext'), { headers: ['x-b3', 'traceparent'], logged: [] })
})
