'use strict'

// A limit of N attributes exports exactly N. Invalid arguments lose only themselves. Unsupported variables are named in a warning.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { runInChild } = require('../support/child')

for (const attributes of [16, 40, 128]) {
  for (const url of ['/ok', '/ok?', '/ok?a=1', '/fails', '/fails?a=1']) {
    test(`a limit of ${attributes} attributes exports exactly that many, for ${url}`, async (t) => {
      const sink = await startSink(t)
      const { origin, app } = await tracedApp(t, {
        trace: { spanProcessors: undefined, exporter: { url: sink.url }, limits: { attributes } },
        routes (app) {
          const fill = ({ trace }) => { for (let i = 0; i < 200; i++) trace.span.setAttribute(`key.${i}`, i) }
          app.get('/ok', async (request) => { fill(request); return 'ok' })
          app.get('/fails', async (request) => { fill(request); throw new TypeError('no') })
        }
      })
      await (await fetch(origin + url)).text()
      await app.lightTrace.flush()
      const [span] = await sink.waitFor(1)
      t.equal(Object.keys(span.attributes).length, attributes)
      if (url.startsWith('/fails')) t.equal(span.attributes['error.type'], 'TypeError')
    })
  }
}

test('inject() and startSpan() accept any argument', async (t) => {
  const hostile = { get kind () { throw new Error('kind') }, get root () { throw new Error('root') }, get attributes () { throw new Error('attributes') } }
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async ({ trace }) => {
      const given = [null, undefined, 7, 'text', Object.freeze({}), { get traceparent () {}, set traceparent (value) { throw new Error('setter') } }].map((headers) => typeof trace.inject(headers))
      trace.withSpan('hostile', hostile, () => {})
      app.lightTrace.tracer.startSpan('own', hostile).end()
      return { given, traceparent: trace.inject(null).traceparent }
    })
  })
  const { statusCode, payload } = await app.inject('/')
  t.equal(statusCode, 200, payload)
  const { given, traceparent } = JSON.parse(payload)
  t.same(given, ['object', 'object', 'object', 'object', 'object', 'object'])
  t.match(traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]$/)
  t.same((await collector.spans()).map(({ name }) => name).sort(), ['GET /', 'hostile', 'own'])
})

test('OTEL_BSP_MAX_QUEUE_SIZE is reported in a line at level info', async (t) => {
  for (const [options, expected] of [[{}, 1], [{ buffer: { maxBytes: 1e6 } }, 0]]) {
    const child = runInChild(t, async ({ Fastify, lightTrace, say }, options) => {
      const app = Fastify({ logger: { level: 'info', stream: { write: (line) => say(JSON.parse(line).msg) } } })
      await app.register(lightTrace, { exporter: { url: 'http://127.0.0.1:1' }, ...options })
      await app.ready()
      await app.close()
    }, { args: [options], env: { OTEL_BSP_MAX_QUEUE_SIZE: '2048' } })
    t.equal((await child.exit).said.filter((line) => /OTEL_BSP_MAX_QUEUE_SIZE is ignored/.test(line)).length, expected)
  }
})
