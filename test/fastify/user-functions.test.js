'use strict'

// Each function that an application passes to light-trace, and what can go wrong with it: it throws, it throws a value that throws when it
// is read, or it is async by mistake and rejects. tap fails a test on an unhandled rejection, which would end a real process.

const { tracingChannel } = require('node:diagnostics_channel')
const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { tellingLogger } = require('../support/telling-logger')

const HOSTILE = Object.defineProperty(new Error(), 'message', { get () { throw new Error('again') } })
const WRONG = [
  () => { throw new Error('broken') },
  () => { throw HOSTILE },
  () => { throw { message: Symbol('no text') } }, // eslint-disable-line no-throw-literal
  () => { throw null }, // eslint-disable-line no-throw-literal
  async () => ({ a: 1 }),
  async () => { throw new Error('late') },
  async () => { throw HOSTILE }
]
const channel = tracingChannel('wrong:op')

const PLACES = {
  spanName: (spanName) => ({ spanName }),
  attributes: (attributes) => ({ attributes }),
  store: (store) => ({ store }),
  ignore: (ignore) => ({ ignore }),
  trustIncoming: (trustIncoming) => ({ trustIncoming }),
  redactQuery: (redactQuery) => ({ redactQuery }),
  sampler: (shouldSample) => ({ sampler: { shouldSample, toString: () => 'wrong' } }),
  'metrics.attributes': (attributes) => ({ metrics: { exporter: 'none', attributes } }),
  'outbound.propagateTo': (propagateTo) => ({ outbound: { propagateTo } }),
  'channel name': (name) => ({ outbound: { channels: { 'wrong:op': { name } } } }),
  'channel attributes': (attributes) => ({ outbound: { channels: { 'wrong:op': { attributes } } } })
}

for (const [place, traceWith] of Object.entries(PLACES)) {
  test(`if ${place} throws or is async, the request is served, and it is logged once`, { skip: place === 'metrics.attributes' && without('metrics') }, async (t) => {
    for (const wrong of WRONG) {
      const loggerInstance = tellingLogger()
      const { app, origin } = await tracedApp(t, { fastify: { loggerInstance }, trace: traceWith(wrong), routes })
      for (let i = 0; i < 2; i++) {
        const response = await fetch(`${origin}/users/7?a=b`, { headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } })
        t.equal(await response.text(), 'ok')
      }
      await app.close()
      t.same(loggerInstance.logged.map(([code]) => code), [place === 'sampler' ? 'LT_WARN_SAMPLER' : 'LT_WARN_CALLBACK'], `${wrong}`)
    }
  })
}

test('an async logger that rejects does no harm', async (t) => {
  const loggerInstance = tellingLogger()
  loggerInstance.warn = async () => { throw new Error('no disk') }
  const { app, origin } = await tracedApp(t, { fastify: { loggerInstance }, trace: { attributes: WRONG[0] }, routes })
  t.equal(await (await fetch(`${origin}/users/7`)).text(), 'ok')
  await app.close()
})

function routes (app) {
  app.get('/called', async () => 'called')
  app.get('/users/:id', async (request) => {
    const { port } = app.server.address()
    if (request.query.a !== undefined) await (await fetch(`http://127.0.0.1:${port}/called`)).text()
    return channel.traceSync(() => 'ok', {})
  })
}

test('a function that fails once does not hide one that always fails', async (t) => {
  const loggerInstance = tellingLogger()
  const fails = (name) => () => { throw new Error(name) }
  const { app, collector } = await tracedApp(t, {
    listen: false,
    fastify: { loggerInstance },
    trace: {
      spanName: fails('spanName'),
      attributes: fails('attributes'),
      onEnd: fails('onEnd'),
      outbound: { channels: { 'wrong:op': { name: fails('name'), attributes: fails('attributes of the channel') } } }
    },
    routes: (app) => app.get('/', { config: { trace: { attributes: fails('attributes of the route') } } }, () => channel.tracePromise(async () => 'ok', {}))
  })
  for (let i = 0; i < 2; i++) await app.inject('/')
  await collector.spans()
  const said = loggerInstance.logged.map(([code, message]) => `${code} ${message.split(': ').at(-1)}`)
  t.same(said.sort(), ['attributes', 'attributes of the channel', 'attributes of the route', 'name', 'onEnd', 'spanName'].map((name) => `LT_WARN_CALLBACK ${name}`))
})
