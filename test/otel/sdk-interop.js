'use strict'

// Other OpenTelemetry packages together with light-trace. Each test runs in a separate process, because the packages hook into `require`.

const assert = require('node:assert/strict')
const http = require('node:http')
const path = require('node:path')
const { existsSync } = require('node:fs')
const { promisify } = require('node:util')
const execFile = promisify(require('node:child_process').execFile)
const { startSink } = require('../support/otlp-sink')

module.exports = { sdkInterop }

function sdkInterop (test, kit, fixture) {
  const runApp = (name, args, { env, node = [] } = {}) => runMain([...node, path.join(fixture, 'app.js'), name, ...args], env)
  const runMain = async (args, env = {}) => {
    const { stdout } = await execFile(process.execPath, args, {
      cwd: fixture, env: { ...process.env, FIXTURE: fixture, NODE_TEST_CONTEXT: undefined, ...env }, timeout: 60_000
    })
    return JSON.parse(stdout.trim().split('\n').at(-1))
  }

  for (const way of ['sdk', 'facade']) {
    test(`instrumentation-http's server span is the request's (${way})`, async () => {
      const { mode, active, spans, both, counts } = await runApp('http-instrumentation.js', [way])
      assert.equal(mode, way === 'sdk' ? 'sdk' : 'processors')
      assert.deepEqual(active, [true, true, true])
      assert.equal(both, false)
      const servers = spans.filter(({ kind }) => kind === 1)
      assert.deepEqual(servers.map(({ name, route, path }) => [name, route, path]), [
        ['GET /inner', '/inner', '/inner'],
        ['GET /users/:id', '/users/:id', '/users/7'],
        ['GET /fail', '/fail', '/fail']
      ])
      assert.equal(servers[1].exception, undefined)
      assert.equal(servers[2].exception, 'TypeError')
      assert.equal(spans.filter(({ kind }) => kind === 2).length, 1, 'one client span')
      const ids = spans.map(({ spanId }) => spanId)
      assert.equal(new Set(ids).size, ids.length)
      assert.equal(counts.ended, counts.accepted + counts.unsampled)
    })
  }

  test('with a NodeSDK for metrics only, its context manager is used, and the spans are ours', async () => {
    const { mode, active, spans } = await runApp('http-instrumentation.js', ['metrics'])
    assert.equal(mode, 'processors')
    assert.deepEqual(active, [true, true, true])
    assert.deepEqual(spans.map(({ kind, name }) => [kind, name]), [[1, 'GET /inner'], [2, 'GET'], [1, 'GET /users/:id'], [1, 'GET /fail']])
  })

  test('@fastify/request-context keeps its store, and light-trace keeps its own', async () => {
    const { status, seen, names } = await runApp('fastify-otel.js', ['none'])
    assert.equal(status, 200)
    assert.deepEqual(seen, [true, true, true])
    assert.deepEqual(names, [[1, 'GET /users/:id']])
  })

  if (existsSync(path.join(fixture, '..', '@fastify', 'otel'))) {
    // P01
    test('@fastify/otel in the same application: one trace, no duplicate id', async () => {
      const { status, seen, names, traces, doubled } = await runApp('fastify-otel.js', ['otel'])
      assert.equal(status, 200)
      assert.deepEqual(seen, [true, true, true])
      assert.ok(names.some(([kind, name]) => kind === 1 && name === 'GET /users/:id'), JSON.stringify(names))
      assert.equal(traces, 1)
      assert.equal(doubled, false)
    })
  }

  test('OTEL_PROPAGATORS can be b3, b3multi and none', async () => {
    const caller = JSON.stringify({ b3: '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1', traceparent: '00-11111111111111111111111111111111-2222222222222222-01' })
    const single = await runApp('b3.js', [caller], { env: { OTEL_PROPAGATORS: 'b3' } })
    assert.equal(single.traceId, '0af7651916cd43dd8448eb211c80319c')
    assert.match(single.headers.b3, /^0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-1$/)
    assert.equal(single.headers.traceparent, undefined)
    assert.match(single.injected.b3, /^0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-1$/)
    const multi = await runApp('b3.js', [caller], { env: { OTEL_PROPAGATORS: 'b3multi,tracecontext' } })
    assert.equal(multi.headers['x-b3-traceid'], multi.traceId)
    assert.match(multi.headers.traceparent, new RegExp(multi.traceId))
    const none = await runApp('b3.js', [caller], { env: { OTEL_PROPAGATORS: 'none' } })
    assert.deepEqual(none.headers, {})
    assert.notEqual(none.traceId, '11111111111111111111111111111111')
  })

  test('exporters of the SDK get complete spans: OTLP, Zipkin, console', async (t) => {
    const sink = await startSink()
    t.after(() => sink.close())
    const zipkin = await startZipkin(t)
    const lines = []
    const app = kit.Fastify()
    t.after(() => app.close())
    await app.register(kit.lightTrace, {
      serviceName: 'shop',
      spanProcessors: [kit.batch(new kit.OtlpExporter({ url: sink.url })), kit.batch(new kit.ZipkinExporter({ url: zipkin.url })), kit.simple(new kit.ConsoleSpanExporter())]
    })
    app.get('/users/:id', async () => { throw new TypeError('no') })
    const { dir } = console
    console.dir = (span) => lines.push(span)
    try {
      await app.inject({ url: '/users/7', headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03' } })
      await app.lightTrace.flush()
    } finally {
      console.dir = dir
    }
    const [span] = await sink.waitFor(1)
    assert.equal(span.name, 'GET /users/:id')
    assert.equal(span.parentSpanId, 'b7ad6b7169203331')
    assert.equal(span.attributes['http.response.status_code'], 500)
    assert.equal(span.resource['service.name'], 'shop')
    assert.equal(span.events[0].name, 'exception')
    const [[zipkinSpan]] = zipkin.bodies
    assert.equal(zipkinSpan.name, 'GET /users/:id')
    assert.equal(zipkinSpan.traceId, '0af7651916cd43dd8448eb211c80319c')
    assert.equal(zipkinSpan.localEndpoint.serviceName, 'shop')
    assert.ok(zipkinSpan.duration > 0)
    assert.equal(lines[0].name, 'GET /users/:id')
    assert.equal(lines[0].attributes['http.route'], '/users/:id')
  })

  test('a tracer that an ES module gets at load time works', async () => {
    assert.deepEqual(await runMain([path.join(fixture, 'early.mjs')]), { active: true, current: true, spans: ['early', 'GET /'] })
  })

  test('node --import light-trace/register works', async (t) => {
    const sink = await startSink()
    t.after(() => sink.close())
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: sink.url, OTEL_SERVICE_NAME: 'zero' }
    const seen = await runApp('untouched.js', [], { env, node: ['--import', 'light-trace/register'] })
    assert.deepEqual(seen, { current: true, decorated: true, explicit: 'none' })
    const spans = await sink.waitFor(2)
    assert.deepEqual(spans.map(({ name }) => name).sort(), ['GET /child/:id', 'GET /users/:id'])
    assert.ok(spans.every(({ resource }) => resource['service.name'] === 'zero'))
  })
}

async function startZipkin (t) {
  const bodies = []
  const server = http.createServer((request, response) => {
    let body = ''
    request.on('data', (piece) => { body += piece })
    request.on('end', () => { bodies.push(JSON.parse(body)); response.writeHead(202).end() })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => { server.close(); server.closeAllConnections() })
  return { url: `http://127.0.0.1:${server.address().port}/api/v2/spans`, bodies }
}
