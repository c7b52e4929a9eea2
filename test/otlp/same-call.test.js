'use strict'

// The span of a call is written from its target's template, or attribute by attribute, or is read as an object by a processor. All three
// must have the same content.

const diagnosticsChannel = require('node:diagnostics_channel')
const http = require('node:http')
const { once } = require('node:events')
const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { upstream } = require('../support/upstream')
const { startSink } = require('../support/otlp-sink')
const { fromBytes, fromObject } = require('../support/same-span')

const PATHS = ['/', '/items/7', '/items?id=7&sig=secret', '/%C3%A4?b=%20', `/${'y'.repeat(490)}`, `/${'z'.repeat(511)}`, `/${'q'.repeat(3000)}`]
const STATUSES = [200, 201, 204, 301, 302, 400, 401, 403, 404, 409, 410, 418, 422, 429, 431, 451, 500, 501, 502, 503, 504, 599]
// Short keys are copied behind the command. Other keys are not: empty, not ASCII, with a lone surrogate, long, or cut.
const REDIS_KEYS = ['ä🦊', 'user:1', 'user:10', '', 'ä', '\ud800', 'k'.repeat(510), 'k'.repeat(511), 'k'.repeat(512), 'x'.repeat(5000)]
const LIMITS = [{}, { attributes: 4 }, { attributes: 40, attributeValueLength: 1100 }, { attributeValueLength: 24 }]
const INHERITED = { inheritAttributes: ['tenant.id', 'http.route', 'url.full'], attributes: { 'tenant.id': 'ä' } }

for (const [limits, more] of [...LIMITS.map((limits) => [limits, {}]), ...without('inherit') ? [] : [[{}, INHERITED], [{ attributes: 4 }, INHERITED]]]) {
  test(`calls are recorded natively as for a processor: ${JSON.stringify({ limits, ...more })}`, async (t) => {
    const { origin } = await upstream(t, (req, res) => {
      res.statusCode = Number(req.headers['x-status'])
      res.end()
    }, { port: 0, host: '127.0.0.1' })
    const sink = await startSink(t)
    const native = await tracedApp(t, { trace: { spanProcessors: undefined, exporter: { url: sink.url }, limits, ...more }, routes: routesTo(origin) })
    const objects = await tracedApp(t, { trace: { limits, ...more }, routes: routesTo(origin) })
    for (const { app } of [native, objects]) t.equal((await app.inject('/go')).statusCode, 200)
    await native.app.lightTrace.flush()
    const exported = sink.spans.map(fromBytes).map(withoutTime)
    const collected = (await objects.collector.spans()).map(fromObject).map(withoutTime)
    t.equal(exported.length, PATHS.length * 2 + STATUSES.length + (without('libraries') ? 3 : REDIS_KEYS.length + 7))
    const key = (span) => JSON.stringify(span)
    t.strictSame(exported.sort((a, b) => key(a) < key(b) ? -1 : 1), collected.sort((a, b) => key(a) < key(b) ? -1 : 1))
    if (Object.keys(limits).length === 0) {
      const urls = exported.flatMap(({ attributes }) => attributes.filter(([name]) => name === 'url.full').map(([, value]) => JSON.parse(value)))
      t.ok(urls.includes(`${origin}/items?id=7&sig=REDACTED`))
      t.ok(urls.includes(`${origin}/${'q'.repeat(3000)}`), 'a long URL is complete')
      const statuses = exported.flatMap(({ attributes }) => attributes.filter(([name]) => name === 'http.response.status_code').map(([, value]) => Number(value)))
      for (const status of STATUSES) t.ok(statuses.includes(status))
    }
  })
}

// The duration differs between two requests.
function withoutTime (span) {
  return { ...span, attributes: span.attributes.map(([key, value]) => [key, key === 'light_trace.repeated.duration' ? typeof JSON.parse(value) : value]) }
}

function routesTo (origin) {
  return (app) => app.get('/go', async () => {
    for (const path of PATHS) {
      await read(origin + path, 200)
      await get(origin + path)
    }
    for (const status of STATUSES) await read(origin, status)
    await read(origin, 200, 'PROPFIND')
    await get(`${origin}/`, { path: 'http://user:pass@other.example/x?sig=1' })
    const at = { database: 0, serverAddress: 'r', serverPort: 6379 }
    const redis = (command, args, work = async () => 'x') =>
      diagnosticsChannel.tracingChannel('node-redis:command').tracePromise(work, { command, args: [command, ...args], ...at }).catch(() => {})
    for (const key of REDIS_KEYS) await redis('GET', [key])
    await redis('GET', ['list'], async () => { throw new Error('WRONGTYPE Operation against a key') })
    await redis('config', ['get', 'x'])
    await redis('NOTHEARDOF', ['secret'])
    await diagnosticsChannel.tracingChannel('node-redis:batch').tracePromise(async () => [], { batchMode: 'MULTI', batchSize: 3, ...at })
    return 'ok'
  })
}

async function read (url, status, method = 'GET') {
  await (await fetch(url, { method, headers: { 'x-status': String(status) }, redirect: 'manual' })).text()
}

async function get (url, options = {}) {
  const [response] = await once(http.get(url, { ...options, headers: { 'x-status': '200' }, agent: false }), 'response')
  response.resume()
  await once(response, 'end')
}
