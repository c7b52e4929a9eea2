'use strict'

// Each request has one outcome. Its span, its metrics, `keep`, its held lines and its slow-request attributes agree on it.

const { once } = require('node:events')
const http2 = require('node:http2')
const { Readable } = require('node:stream')
const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { connect } = require('../support/raw-client')
const { ServerSpan } = require('../../lib/span/server-span')

const GOOD = 'good'
const FAILED = 'failed'
const LEFT = 'left'

// The part of the span's picture after the name, and whether that outcome is bad. The metrics have the same status code and error.type,
// except for a 4xx.
const WAYS = {
  ok: ['200', GOOD, async () => 'ok'],
  refused: ['400 error.type=Error exception=Error: no', GOOD, async () => { throw Object.assign(new Error('no'), { statusCode: 400 }) }],
  thrown: ['500 ERROR error.type=TypeError exception=TypeError: no', FAILED, async () => { throw new TypeError('no') }],
  'named-aborted': ['500 ERROR error.type=aborted exception=aborted: no', FAILED, async () => { throw Object.assign(new Error('no'), { name: 'aborted' }) }],
  answered: ['503 ERROR error.type=503', FAILED, async (request, reply) => reply.code(503).send('no')],
  'on-raw': ['503 ERROR error.type=503', FAILED, (request, reply) => {
    reply.hijack()
    reply.raw.statusCode = 503
    reply.raw.end('no')
  }],
  later: ['200', GOOD, (request, reply) => {
    reply.raw.on('finish', () => { reply.raw.statusCode = 500 })
    reply.send('ok')
  }],
  'thrown-after-the-head': ['200', GOOD, async (request, reply) => {
    reply.raw.writeHead(200)
    reply.raw.end('ok')
    throw new Error('late')
  }],
  'breaks-off': ['200 ERROR error.type=response_terminated', FAILED, async (request, reply) => reply.send(Readable.from((async function * () {
    yield 'head'
    throw new Error('late')
  })()))],
  'hijacked-breaks-off': ['200 ERROR error.type=response_terminated', FAILED, (request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200)
    reply.raw.write('head', () => reply.raw.destroy(new Error('late')))
  }],
  'said-ok': ['500 OK error.type=500', GOOD, async ({ trace }, reply) => {
    trace.span.setStatus({ code: 1 })
    return reply.code(500).send('fine')
  }],
  'said-error': ['200 ERROR', FAILED, async ({ trace }) => {
    trace.span.setStatus({ code: 2 })
    return 'ok'
  }],
  'left-before-the-head': ['- ERROR error.type=aborted', LEFT, () => {}],
  'left-after-the-head': ['200 ERROR error.type=aborted', LEFT, async (request, reply) => reply.send(endless())],
  'left-a-500': ['500 ERROR error.type=aborted', LEFT, async (request, reply) => reply.code(500).send(endless())],
  'left-hijacked': ['200', GOOD, (request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200)
    reply.raw.write('head')
  }]
}

// Answers that Fastify makes itself. None of them is an error.
const JSON_TYPE = { 'content-type': 'application/json' }
const OWN = [
  ['GET 404', { url: '/nowhere' }],
  ['POST /json 400 error.type=FST_ERR_CTP_INVALID_JSON_BODY', { url: '/json', method: 'POST', payload: '{', headers: JSON_TYPE }],
  ['POST /json 413 error.type=FST_ERR_CTP_BODY_TOO_LARGE', { url: '/json', method: 'POST', payload: `"${'x'.repeat(200)}"`, headers: JSON_TYPE }],
  ['POST /json 415 error.type=FST_ERR_CTP_INVALID_MEDIA_TYPE', { url: '/json', method: 'POST', payload: 'x', headers: { 'content-type': 'a/b' } }]
]

function endless () {
  return Readable.from((async function * () {
    yield 'head'
    await new Promise(() => {})
  })())
}

const MODES = [
  { name: 'sampled', trace: {} },
  { name: 'kept if it failed', trace: { sampler: 0, keep: { errors: true } } },
  { name: 'kept also if the client left', trace: { sampler: 0, keep: { errors: true, aborted: true } } },
  { name: 'not sampled', trace: { sampler: 0 } },
  { name: 'neither sampled nor measured', trace: { sampler: 0, metrics: false } }
]

for (const http of [1, 2]) for (const { name, trace } of MODES) test(`HTTP/${http}, ${name}`, { skip: trace.keep !== undefined && without('keep') }, (t) => check(t, http, trace))

async function check (t, http, { metrics = { exporter: 'none' }, ...trace }) {
  const explained = watchAccounts(t)
  const lines = []
  let over // resolves when the response is over
  let running // resolves when the handler runs
  const { app, collector, origin, port } = await tracedApp(t, {
    fastify: { http2: http === 2, logger: { level: 'info', stream: { write: (line) => { lines.push(JSON.parse(line)) } } } },
    before: (app) => app.addHook('onRequest', async (request, reply) => {
      reply.raw.once('close', () => setImmediate(setImmediate, over))
    }),
    routes (app) {
      app.addHook('onRequest', async ({ log }) => { log.debug('held') })
      app.post('/json', { bodyLimit: 100 }, async () => 'ok')
      for (const [path, [, , handler]] of Object.entries(WAYS)) {
        app.get(`/${path}`, (request, reply) => {
          running?.()
          return handler(request, reply)
        })
      }
    },
    trace: { metrics, logs: { buffer: 'debug' }, slow: { afterMs: 1e6 }, ...trace }
  })
  const ask = http === 2 ? overHttp2(t, origin) : overHttp1(port)
  for (const [path, [said]] of Object.entries(WAYS)) {
    const isRunning = new Promise((resolve) => { running = resolve })
    const isOver = new Promise((resolve) => { over = resolve })
    await ask(`/${path}`, path.startsWith('left-'), said.startsWith('-') ? isRunning : undefined)
    await isOver
  }
  over = () => {}
  for (const [, request] of OWN) await app.inject(request)
  const { sampler = 1, keep } = trace
  const isBad = (outcome) => outcome === FAILED || (outcome === LEFT && keep?.aborted === true)
  const isTraced = sampler === 1 || keep !== undefined
  const ways = Object.entries(WAYS)
  const seen = ways.filter(([, [, outcome]]) => sampler === 1 || (keep !== undefined && isBad(outcome)))
  const own = OWN.map(([said]) => said)
  const spans = (await picture(collector)).map((line) => line.replace(/=SyntaxError exception=.*/, '=FST_ERR_CTP_INVALID_JSON_BODY').replace(/ exception=FST_.*/, '')) // Fastify 5.0 has no code for it
  t.same(spans, [...seen.map(([path, [said]]) => `GET /${path} ${said}`), ...sampler === 1 ? own : []], 'spans, from `keep` if they are not sampled')

  const worth = ways.filter(([path, [said, outcome]]) => isTraced || !path.startsWith('said-') ? isBad(outcome) : said.startsWith('5'))
  const heldOf = new Set(lines.filter(({ msg }) => msg === 'held').map(({ reqId }) => reqId))
  const printed = lines.filter(({ msg, reqId }) => msg === 'incoming request' && heldOf.has(reqId)).map(({ req }) => req.url)
  if (!without('logs')) t.same(printed, worth.map(([path]) => `/${path}`), 'held lines')

  if (sampler === 1 && !without('accounts')) t.same([...explained], ways.filter(([, [, outcome]]) => outcome !== GOOD).map(([path]) => `GET /${path}`), 'accounts')
  if (metrics !== false && !without('metrics')) t.same(measured(await app.lightTrace.metrics()), [...ways.map(([path, [said]]) => measuredOf(`/${path}`, said)), ...own.map(measuredOfOwn)].sort(), 'metrics')
}

test('an error thrown in a handler or a hook is on its span if the request has failed', { skip: without('stages') }, async (t) => {
  const { collector, app } = await tracedApp(t, {
    listen: false,
    trace: { spans: { handler: true, hooks: ['preHandler'] } },
    routes (app) {
      const fail = async ({ query: { thrown } }) => { throw Object.assign(new TypeError('no'), { statusCode: Number(thrown) }) }
      app.setErrorHandler((error, { query: { answered } }, reply) => reply.code(Number(answered)).send(error.message))
      app.get('/handler', fail)
      app.get('/hook', { preHandler: fail }, async () => 'never')
    }
  })
  for (const path of ['/handler', '/hook']) {
    for (const thrown of [404, 500]) for (const answered of [200, 409, 503]) await app.inject(`${path}?thrown=${thrown}&answered=${answered}`)
  }
  const spans = await collector.spans()
  const stages = spans.filter(({ kind }) => kind === 'INTERNAL')
  t.equal(stages.length, 12)
  for (const { traceId, name, status, attributes, endTime } of stages) {
    const request = spans.find((span) => span.kind === 'SERVER' && span.traceId === traceId)
    t.same([status.code, attributes['error.type']], [request.status.code, request.status.code === 'ERROR' ? 'TypeError' : undefined], `${name} ${request.attributes['url.query']}`)
    t.ok(endTime <= request.endTime)
  }
})

/** Returns the names of the requests whose waiting times would be recorded. */
function watchAccounts (t) {
  const names = new Set()
  const { close } = ServerSpan.prototype
  ServerSpan.prototype.close = function (...args) {
    close.apply(this, args)
    if (this.route.explainer?.explains(this, this.endedAt - this.start)) names.add(this.name)
  }
  t.teardown(() => { ServerSpan.prototype.close = close })
  return names
}

/** Returns '/path status error.type' for each series. */
function measured (text) {
  return text.split('\n').filter((line) => line.startsWith('http_server_request_duration_seconds_count{')).map((line) => {
    const labels = Object.fromEntries([...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]))
    return [labels.http_route ?? '', labels.http_response_status_code ?? '-', labels.error_type ?? ''].join(' ')
  }).sort()
}

function measuredOf (path, said) {
  const type = said.startsWith('4') ? '' : /error\.type=(\S+)/.exec(said)?.[1] ?? '' // D13
  return [path, said.split(' ')[0], type].join(' ')
}

function measuredOfOwn (said) {
  const [, path = '', status] = / (\/\S+)? ?(\d+)/.exec(said)
  return measuredOf(path, status)
}

// The client disconnects when it has the head or, without a head, when the handler runs.

function overHttp1 (port) {
  return async (path, leaves, isRunning) => {
    const client = await connect(port)
    client.request('GET', path)
    if (!leaves) return
    await (isRunning ?? client.until('head'))
    await client.leave()
  }
}

function overHttp2 (t, origin) {
  const client = http2.connect(origin)
  t.teardown(() => client.destroy())
  return async (path, leaves, isRunning) => {
    const stream = client.request({ ':path': path })
    stream.on('error', () => {})
    stream.resume()
    if (!leaves) return
    await (isRunning ?? once(stream, 'data'))
    stream.close(http2.constants.NGHTTP2_CANCEL)
  }
}
