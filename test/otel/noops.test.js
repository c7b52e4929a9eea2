'use strict'

// A no-op provider that is registered with the API is ignored, even if a minifier has renamed the API's classes.

const { execFile } = require('node:child_process')
const { join } = require('node:path')
const { promisify } = require('node:util')
const { build } = require('esbuild')
const { test } = require('tap')
const { without } = require('../support/features')

const root = join(__dirname, '../..')

const APP = `
const fastify = require('fastify')
const api = require('@opentelemetry/api')
const lightTrace = require('light-trace')

async function see () {
  const app = fastify()
  await app.register(lightTrace, { sampler: 'always_off', metrics: { exporter: 'none' } })
  app.get('/', async () => 'ok')
  await app.inject('/')
  const seen = { mode: app.lightTrace.stats().mode, isMeasured: /http_server_request_duration_seconds_count.* 1/.test(await app.lightTrace.metrics?.()) }
  await app.close()
  return seen
}

async function main () {
  const { ProxyTracerProvider } = api
  const noop = new ProxyTracerProvider().getDelegate()
  const providers = {
    'the proxy': new ProxyTracerProvider(),
    'the no-op': noop,
    'a no-op of its own': new noop.constructor(),
    'a proxy of a no-op of its own': Object.assign(new ProxyTracerProvider(), { _delegate: new noop.constructor() })
  }
  const noMeters = api.metrics.getMeterProvider()
  const seen = {}
  for (const [name, provider] of Object.entries(providers)) {
    api.trace.setGlobalTracerProvider(provider)
    seen[name] = await see()
    api.trace.disable()
  }
  for (const [name, provider] of Object.entries({ 'no meters': noMeters, 'no meters of its own': new noMeters.constructor() })) {
    api.metrics.setGlobalMeterProvider(provider)
    seen[name] = await see()
    api.metrics.disable()
  }
  // One that somebody has written is none, however little it does.
  const meter = { ...api.createNoopMeter() }
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(api.createNoopMeter()))) meter[name] = api.createNoopMeter()[name]
  api.trace.setGlobalTracerProvider({ getTracer: () => noop.getTracer() })
  api.metrics.setGlobalMeterProvider({ getMeter: () => meter })
  seen.theirs = await see()
  console.log(JSON.stringify(seen))
}

main()
`

for (const minify of [false, true]) {
  test(`a no-op provider does not count${minify ? ', minified' : ''}`, async (t) => {
    const file = join(t.testdir(), 'app.cjs')
    await build({
      stdin: { contents: APP, resolveDir: root },
      outfile: file,
      bundle: true,
      platform: 'node',
      minify,
      logLevel: 'silent',
      alias: { 'light-trace': join(root, 'index.js') }
    })
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env: { ...process.env, NODE_OPTIONS: '' } })
    const nothing = { mode: 'native', isMeasured: !without('metrics') }
    t.same(JSON.parse(stdout), {
      'the proxy': nothing,
      'the no-op': nothing,
      'a no-op of its own': nothing,
      'a proxy of a no-op of its own': nothing,
      'no meters': nothing,
      'no meters of its own': nothing,
      theirs: { mode: without('sdk') ? 'native' : 'sdk', isMeasured: false }
    })
  })
}
