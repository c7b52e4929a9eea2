'use strict'

// A failing collector is logged once, even if the failure varies and several applications use it.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startFakeCollector } = require('../support/fake-collector')

async function appWith (t, url, lines) {
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url }, registerGlobals: false, buffer: { closeTimeoutMs: 100 } })
  app.get('/', async () => 'ok')
  await app.ready()
  return app
}

test('a collector with varying statuses logs one line per class of failure', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = (request, number) => ({ status: [400, 401, 403, 404, 405, 415, 422, 500, 501, 505, 507, 599][number % 12], body: `answer ${number}`, headers: { 'content-type': 'text/plain' } })
  const lines = []
  const app = await appWith(t, collector.url, lines)
  for (let i = 0; i < 48; i++) {
    await app.inject('/')
    await app.lightTrace.flush()
  }
  t.equal(collector.requests.length, 48)
  t.equal(app.lightTrace.stats().spans.dropped.non_retryable, 48)
  t.same(lines.map(({ code, msg }) => `${code} ${/HTTP status (\d)/.exec(msg)[1]}xx`), ['LT_WARN_LOSS 4xx', 'LT_WARN_LOSS 5xx'])
})

for (const [what, down, expected] of [['is not there', true, /ECONNREFUSED/], ['answers with a web page', false, /web page/]]) {
  test(`twenty apps whose collector ${what} log one line, with the logger of the first one`, async (t) => {
    const collector = await startFakeCollector(t)
    collector.script = [{ body: '<html>', headers: { 'content-type': 'text/html' } }]
    if (down) await collector.down()
    const logs = []
    const kinds = new Set()
    for (let i = 0; i < 20; i++) {
      const lines = []
      logs.push(lines)
      const app = await appWith(t, collector.url, lines)
      await app.inject('/')
      await app.lightTrace.flush()
      await app.close()
      for (const { msg } of lines) kinds.add(msg.replace(/\d+/g, 'n'))
    }
    t.match(logs[0][0], { code: 'LT_WARN_LOSS', msg: expected })
    t.equal(logs.flat().length, kinds.size, 'one of each kind')
    t.same(logs.slice(1).flat(), [])
  })
}

test('two collectors log two lines', async (t) => {
  const lines = []
  for (let i = 0; i < 2; i++) {
    const collector = await startFakeCollector(t)
    collector.script = [{ status: 400 }]
    const app = await appWith(t, collector.url, lines)
    await app.inject('/')
    await app.lightTrace.flush()
  }
  t.equal(lines.length, 2)
})
