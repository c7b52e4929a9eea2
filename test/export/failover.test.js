'use strict'

// exporter.urls: which of several collectors gets the spans, with real servers that go and come.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { Order } = require('../../lib/export/http/failover')
const { startFakeCollector } = require('../support/fake-collector')

async function startApp (t, urls, options = {}) {
  const lines = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { urls, timeoutMs: 2000 }, registerGlobals: false, closeTimeoutMs: 5000, ...options })
  app.get('/', async () => 'ok')
  await app.ready()
  const send = async (count) => {
    for (let i = 0; i < count; i++) await app.inject('/')
    await app.lightTrace.flush()
  }
  return { app, send, lines, spans: () => app.lightTrace.stats().spans }
}

const received = ({ delivered }) => delivered.size

test('the first takes all; the next one while it is away; and the first again once the next is away', async (t) => {
  const first = await startFakeCollector(t)
  const second = await startFakeCollector(t)
  const { send, lines, spans } = await startApp(t, [first.url, second.url])
  await send(3)
  t.same([received(first), received(second)], [3, 0])
  await first.down()
  await send(3)
  await send(3)
  t.same([received(first), received(second)], [3, 6])
  await first.up()
  await send(3)
  t.same([received(first), received(second)], [3, 9], 'not asked again at once')
  await second.down()
  await send(3)
  t.same([received(first), received(second)], [6, 9])
  t.match(spans(), { delivered: 15, dropped: {}, queued: 0, inFlight: 0 })
  t.equal(second.duplicates.length + first.duplicates.length, 0)
  t.same(lines.map(({ code }) => code), ['LT_WARN_LOSS', 'LT_WARN_RECOVERED'])
  t.match(lines[0].msg, `${first.url} does not accept what is sent (`)
  t.match(lines[0].msg, `it goes to ${second.url}`)
  t.match(lines[1].msg, `${first.url} accepts what is sent again`)
})

for (const how of [{ status: 500 }, { status: 301 }, { status: 503 }, { status: 429, headers: { 'retry-after': '60' } }, { status: 404 }, { status: 401 }, { body: '<html></html>', headers: { 'content-type': 'text/html' } }, { resetAfterUpload: true }, { hang: true }]) {
  test(`the next one takes what the first does not: ${JSON.stringify(how)}`, async (t) => {
    const first = await startFakeCollector(t)
    const second = await startFakeCollector(t)
    first.script = [how]
    const { send, spans } = await startApp(t, [first.url, second.url], { exporter: { urls: [first.url, second.url], timeoutMs: 300 } })
    await send(5)
    t.equal(received(second), 5)
    t.match(spans(), { delivered: 5, rejected: 0, dropped: {} })
    const mayBeTwice = how.status !== undefined || how.hang || how.resetAfterUpload || how.body !== undefined
    t.equal(spans().retried > 0, mayBeTwice, 'the first has had them too')
  })
}

test('what the first says is wrong with the spans is not asked of another', async (t) => {
  const first = await startFakeCollector(t)
  const second = await startFakeCollector(t)
  first.script = [{ status: 400 }]
  const { send, spans } = await startApp(t, [first.url, second.url])
  await send(2)
  t.equal(second.requests.length, 0)
  t.match(spans(), { dropped: { non_retryable: 2 } })
})

test('while all are away spans wait; who comes back first gets them, also where another turns them away', async (t) => {
  const first = await startFakeCollector(t)
  const second = await startFakeCollector(t)
  const { app, send, spans } = await startApp(t, [first.url, second.url])
  await first.down()
  await second.down()
  await send(4)
  t.match(spans(), { delivered: 0, queued: 4, dropped: {} })
  await second.up()
  await second.untilRequests(1)
  await app.lightTrace.flush()
  t.equal(received(second), 4)
  await second.down()
  await first.up()
  first.script = [{ status: 404 }]
  await send(2)
  t.match(spans(), { queued: 2, dropped: {} }, '404 is no last word while the other may come back')
  await second.up()
  await second.untilRequests(2)
  await app.lightTrace.flush()
  t.equal(received(second), 6)
})

test('metrics and logs go to the same collector as spans, each to its path', async (t) => {
  const paths = []
  const first = await startFakeCollector(t)
  const server = require('node:http').createServer((request, response) => {
    paths.push(request.url)
    request.resume().on('end', () => response.end())
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const urls = [first.url.replace('/v1/traces', ''), `http://127.0.0.1:${server.address().port}`]
  await first.down()
  const { app, send } = await startApp(t, urls, { metrics: true, logs: { export: true } })
  app.log.warn('something')
  await send(1)
  t.same([...new Set(paths)].sort(), ['/v1/logs', '/v1/metrics', '/v1/traces'])
  server.closeAllConnections()
})

test('the close asks the next one too', async (t) => {
  const first = await startFakeCollector(t)
  const second = await startFakeCollector(t)
  const { app, spans } = await startApp(t, [first.url, second.url])
  await first.down()
  await app.inject('/')
  await app.close()
  t.equal(received(second), 1)
  t.match(spans(), { delivered: 1, dropped: {} })
})

test('a preferred one is asked again after 30 s, then 60 s, up to five minutes', (t) => {
  const order = new Order(['a', 'b', 'c'], { warn () {}, recovered () {} })
  const failure = { retryAfterMs: -1, error: { code: 'ECONNREFUSED', message: '' } }
  t.same(order.at(0), [0, 1, 2])
  order.failed(0, failure, 0)
  order.delivered(1, new Map([[0, failure]]), 0)
  t.same(order.at(29_999), [1, 0, 2])
  for (const [at, next] of [[30_000, 89_999], [90_000, 209_999], [210_000, 449_999], [450_000, 749_999], [750_000, 1_049_999]]) {
    t.same(order.at(at), [0, 1, 2], `${at}`)
    order.failed(0, failure, at)
    order.delivered(1, new Map([[0, failure]]), at)
    t.same(order.at(next), [1, 0, 2], `${next}`)
  }
  order.delivered(0, new Map(), 1_050_000)
  t.same(order.at(1_050_001), [0, 1, 2])
  t.end()
})

test('who asks to be left alone is, unless all do: then the sender waits for the first of them', (t) => {
  const order = new Order(['a', 'b'], { warn () {}, recovered () {} })
  order.failed(0, { retryAfterMs: 10_000 }, 0)
  t.same(order.at(9_999), [1])
  t.equal(order.askedMs(1000, [0, 1]), -1)
  order.failed(1, { retryAfterMs: 5000 }, 1000)
  t.equal(order.askedMs(1000, [0, 1]), 5000)
  t.equal(order.askedMs(1000, [0]), 9000)
  t.same(order.at(2000), [0, 1], 'a close asks them all the same')
  t.same(order.at(6000), [1])
  t.same(order.at(10_000), [0, 1])
  t.end()
})

test('where all have turned away or asked for a pause, spans wait for the one that takes them', async (t) => {
  const first = await startFakeCollector(t)
  const second = await startFakeCollector(t)
  first.script = [{ status: 404 }]
  second.script = (_, number) => number === 0 ? { status: 503, headers: { 'retry-after': '1' } } : { status: 200 }
  const { app, send, spans } = await startApp(t, [first.url, second.url])
  await send(2)
  await second.untilRequests(2)
  await app.lightTrace.flush()
  t.match(spans(), { delivered: 2, dropped: {} })
})

test('a close gives a collector that hangs no more than its part of the time, and aborts all at its end', async (t) => {
  const first = await startFakeCollector(t)
  const second = await startFakeCollector(t)
  first.script = [{ hang: true }]
  const hanging = await startApp(t, [first.url, second.url], { exporter: { urls: [first.url, second.url] }, closeTimeoutMs: 3000 })
  await hanging.app.inject('/')
  await hanging.app.close()
  t.equal(received(second), 1)
  t.match(hanging.spans(), { delivered: 1, dropped: {} })
  second.script = [{ hang: true }]
  const stuck = await startApp(t, [first.url, second.url], { exporter: { urls: [first.url, second.url] }, closeTimeoutMs: 300 })
  await stuck.app.inject('/')
  await stuck.app.close()
  t.match(stuck.spans(), { delivered: 0, dropped: { shutdown_deadline: 1 } })
})

test('each line names the collector that is meant, and the reason is that of the one that is left', async (t) => {
  const servers = await Promise.all([1, 2, 3].map(() => startFakeCollector(t)))
  const [first, second, third] = servers
  await first.down()
  second.script = [{ status: 503, body: 'no' }]
  const { send, lines } = await startApp(t, servers.map(({ url }) => url))
  await send(1)
  t.match(lines, [{ msg: new RegExp(`^${first.url} does not accept what is sent \\(.*ECONNREFUSED.*\\): it goes to ${third.url}$`) }])
  third.script = [{ status: 400, body: 'bad', headers: { 'content-type': 'text/plain' } }]
  await send(1)
  t.match(lines.at(-1).msg, `${third.url} refused 1 span for good`)
})

test('a collector that takes no logs is left alone with logs, and has the spans', async (t) => {
  const { createServer } = require('node:http')
  const paths = [[], []]
  const servers = await Promise.all(paths.map(async (seen, index) => {
    const server = createServer((request, response) => {
      seen.push(request.url)
      if (index === 0 && request.url === '/v1/logs') response.statusCode = 404
      request.resume().on('end', () => response.end())
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${server.address().port}`
  }))
  const { app, send, lines } = await startApp(t, servers, { logs: { export: true, level: 'warn' } })
  for (let i = 0; i < 3; i++) {
    app.log.warn('something')
    await send(1)
  }
  t.equal(paths[0].filter((path) => path === '/v1/logs').length, 1)
  t.equal(paths[0].filter((path) => path === '/v1/traces').length, 3)
  t.same([...new Set(paths[1])], ['/v1/logs'])
  t.equal(lines.filter(({ code }) => code !== undefined).length, 0)
})
