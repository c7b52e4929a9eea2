'use strict'

// Two tiers of a real OpenTelemetry Collector with the files of examples/fleet. An agent balances by trace id between two gateways, which
// count spans and then sample the traces. At the end, the sums must match the requests that were sent, including those that were answered
// while the agent was down and were thinned in a full buffer. An independent decoder reads what the gateways export.

const { writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { setTimeout: pause } = require('node:timers/promises')
const { test, setTimeout: setDeadline } = require('tap')
const Fastify = require('fastify')
const { stringify } = require('yaml')
const lightTrace = require('../..')
const { run, start } = require('../../scripts/run')
const { freePort } = require('../../scripts/free-port')
const { extrapolate, probabilityOf } = require('../support/extrapolation')
const { without } = require('../support/features')
const { startMetricSink } = require('../support/metric-sink')

setDeadline(240_000)

const { COLLECTOR_OTELCOL } = process.env
const FLEET = join(__dirname, '..', '..', 'examples', 'fleet')
const DEADLINE_MS = 60_000
const REQUESTS = 4000
const FAILED = 40
const AT_ONCE = 50
const BUFFER_BYTES = 1024 * 1024 // about 1,500 requests, uncompressed. They are thinned to about an eighth, where failed requests are still the smaller part
const ERRORS_MAX = 5 // standard errors of a sample; three would be exceeded once in 370 runs
const TAIL_THRESHOLD = 'e0000000000000' // for sampling_percentage: 12.5 in gateway.yaml
const TAIL_GATE = '--feature-gates=processor.tailsamplingprocessor.usetracestate'
const QUIET = { telemetry: { metrics: { level: 'none' } } } // otherwise each would listen on port 8888

for (const [names, flags = []] of [[['agent.yaml']], [['gateway.yaml'], [TAIL_GATE]], [['gateway.yaml', 'gateway.clickhouse.yaml'], [TAIL_GATE]]]) {
  test(`${names.join(' and ')}: the mounted configuration is valid unchanged`, async (t) => {
    const { code, output } = await run(COLLECTOR_OTELCOL, ['validate', ...names.map((name) => `--config=${join(FLEET, name)}`), ...flags], { env: { ...process.env, CLICKHOUSE_PASSWORD: 'secret' }, deadlineMs: DEADLINE_MS })
    t.same({ code, output }, { code: 0, output: '' })
  })
}

test('an agent and two gateways: each trace is complete at one gateway, and the final sums match the requests', async (t) => {
  const { sinks, startAgent } = await startGateways(t)
  const { url } = await startAgent()
  const { app, seen } = await sampledApp(t, { exporter: { url }, sampler: 0.25 })
  await ask(app, REQUESTS)
  await app.lightTrace.flush()
  const { delivered, accepted } = app.lightTrace.stats().spans
  t.equal(delivered, accepted, 'the agent accepted everything')

  const sampled = seen.filter(({ isFailed, isSampled }) => isSampled && !isFailed)
  t.same([seen.length, seen.filter(({ isFailed }) => isFailed).length], [REQUESTS, FAILED])
  const counted = () => sum(sinks.flatMap(callsOf))
  await until(() => counted().all >= sampled.length * 4 + FAILED, () => `span metrics: ${JSON.stringify(counted())}`)
  t.same(counted(), { all: sampled.length * 4 + FAILED, failed: FAILED }, 'span metrics: a span counts for all spans that it represents, failed ones once')
  t.ok(Math.abs(counted().all - REQUESTS) < ERRORS_MAX * Math.sqrt((REQUESTS - FAILED) * 3), `span metrics: ${counted().all} of ${REQUESTS}`) // a quarter is sampled; the variance of each is (1 - p) / p

  const taken = seen.filter(({ traceId, isFailed }) => isFailed || traceId.slice(-14) >= TAIL_THRESHOLD)
  await until(() => spansOf(sinks).length >= taken.length * 2, () => `${spansOf(sinks).length} of ${taken.length * 2} spans`)
  const servers = spansOf(sinks).filter(({ kind }) => kind === 'SERVER')
  t.same(idsOf(servers), idsOf(taken), 'the traces of consistent sampling, and no others')
  const [failed, whole] = [true, false].map((isFailed) => servers.filter(({ status }) => (status.code === 'ERROR') === isFailed))
  const { count, deviation } = extrapolate(whole)
  t.ok(Math.abs(count - (REQUESTS - FAILED)) < ERRORS_MAX * deviation, `${count} of ${REQUESTS - FAILED} requests, by ${whole.length} spans; deviation ${deviation}`)
  t.same([...new Set(whole.map(({ traceState }) => probabilityOf(traceState)))], [0.125], 'the tail sampler has raised the sampler\'s threshold')
  t.same(extrapolate(failed), { count: FAILED, deviation: 0 }, 'each failed request represents only itself')

  const [first, second] = sinks.map((sink) => new Set(spansOf([sink]).map(({ traceId }) => traceId)))
  t.ok(first.size > 0 && second.size > 0, 'each gateway has a share')
  t.notOk([...first].some((traceId) => second.has(traceId)), 'each trace is at one gateway')
  t.same(idsOf(spansOf(sinks).filter(({ kind }) => kind === 'INTERNAL')), idsOf(taken), 'with its child')
})

test('if the agent is down while the buffer is thinned, the final sums match all requests, and all failed ones arrive', { skip: without('thinning') }, async (t) => {
  const { sinks, startAgent } = await startGateways(t)
  const before = await startAgent()
  const { app, seen } = await sampledApp(t, { exporter: { url: before.url }, sampler: 0.5, buffer: { maxBytes: BUFFER_BYTES, flushDelayMs: 50 }, closeTimeoutMs: 1000 })
  await ask(app, REQUESTS)
  await app.lightTrace.flush()
  t.equal(app.lightTrace.stats().spans.thinned, 0, 'nothing is thinned while the agent is up')
  await before.stop()
  await ask(app, 3 * REQUESTS)
  await startAgent(before.address)
  await deliver(app)

  const { accepted, delivered, thinned, rejected, dropped } = app.lightTrace.stats().spans
  const failedCount = seen.filter(({ isFailed }) => isFailed).length
  t.same([seen.length, failedCount], [4 * REQUESTS, 4 * FAILED])
  t.equal(accepted, 2 * seen.filter(({ isFailed, isSampled }) => isFailed || isSampled).length, 'a request and its step')
  t.same({ delivered: delivered + thinned, rejected, dropped }, { delivered: accepted, rejected: 0, dropped: {} }, 'thinned and delivered spans add up')
  const arrived = () => spansOf(sinks, '/arrived/v1/traces')
  await until(() => arrived().length >= delivered, () => `${arrived().length} of ${delivered} spans`)
  t.equal(arrived().length, delivered, 'each arrived once')
  const isFailed = ({ status }) => status.code === 'ERROR'
  const isServer = ({ kind }) => kind === 'SERVER'
  const [failed, whole] = [true, false].map((wanted) => arrived().filter((span) => isServer(span) && isFailed(span) === wanted))
  t.same(idsOf(failed), idsOf(seen.filter(({ isFailed }) => isFailed)), 'all failed requests arrived')
  const levels = countsBy(whole, ({ traceState }) => 1 / probabilityOf(traceState))
  t.comment(`${thinned} of ${accepted} spans were thinned; requests by the number they represent: ${JSON.stringify(levels)}`)
  t.ok(thinned > accepted / 3 && levels[2] > REQUESTS / 4 && Object.keys(levels).length > 2, 'thinned by more than one level, but not the time before the outage')

  const { count, deviation } = extrapolate(whole)
  const counted = () => sum(sinks.flatMap(callsOf))
  await until(() => counted().all >= count + failedCount, () => `span metrics: ${JSON.stringify(counted())}, not ${count + failedCount}`)
  t.same(counted(), { all: count + failedCount, failed: failedCount }, 'span metrics: a span counts for all spans that it represents, failed ones once')
  isTrueSum(t, counted().all - failedCount, 4 * (REQUESTS - FAILED), deviation, `span metrics, by ${whole.length} spans`)
  const steps = extrapolate(arrived().filter(({ kind }) => kind === 'INTERNAL'))
  isTrueSum(t, steps.count, 4 * REQUESTS, steps.deviation, 'steps')

  const taken = arrived().filter((span) => isServer(span) && (isFailed(span) || span.traceId.slice(-14) >= TAIL_THRESHOLD))
  const servers = () => spansOf(sinks).filter(isServer)
  await until(() => servers().length >= taken.length, () => `${servers().length} of ${taken.length} requests`)
  t.same(idsOf(servers()), idsOf(taken), 'behind the tail sampler: the traces of consistent sampling, and no others')
  const tail = extrapolate(servers().filter((span) => !isFailed(span)))
  isTrueSum(t, tail.count, 4 * (REQUESTS - FAILED), tail.deviation, `behind the tail sampler, by ${servers().length - failedCount} spans`)
  t.same(extrapolate(servers().filter(isFailed)), { count: failedCount, deviation: 0 }, 'each failed request represents only itself')
})

test('if one of two services that sample everything is thinned, the sum of each is true behind the tail sampler', { skip: without('thinning') }, async (t) => {
  const { sinks, startAgent } = await startGateways(t)
  const address = `127.0.0.1:${await freePort()}`
  const appOf = async (serviceName, path, answer, buffer) => {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(lightTrace, { serviceName, exporter: { url: `http://${address}/v1/traces` }, registerGlobals: false, closeTimeoutMs: 1000, buffer })
    app.get(path, answer)
    await app.ready()
    return app
  }
  const seen = []
  const stock = await appOf('stock', '/stock', async () => 'some', { maxBytes: 256 * 1024 })
  const shop = await appOf('shop', '/users/:id', async ({ trace }) => {
    seen.push({ traceId: trace.traceId })
    return (await stock.inject({ url: '/stock', headers: trace.inject({}) })).body
  })
  await ask(shop, REQUESTS, (i) => `/users/${i}`)
  await startAgent(address)
  await Promise.all([shop, stock].map(deliver))
  const { thinned, delivered } = stock.lightTrace.stats().spans
  t.equal(shop.lightTrace.stats().spans.thinned, 0)
  t.ok(thinned > REQUESTS / 2, `${thinned} spans of one service were thinned`)

  const serversOf = (route, path) => spansOf(sinks, path).filter(({ kind, name }) => kind === 'SERVER' && name === `GET ${route}`)
  await until(() => spansOf(sinks, '/arrived/v1/traces').length >= REQUESTS + delivered, () => `${spansOf(sinks, '/arrived/v1/traces').length} of ${REQUESTS + delivered} spans`)
  for (const [route, came] of [['/users/:id', seen], ['/stock', serversOf('/stock', '/arrived/v1/traces')]]) {
    const taken = came.filter(({ traceId }) => traceId.slice(-14) >= TAIL_THRESHOLD)
    await until(() => serversOf(route).length >= taken.length, () => `${serversOf(route).length} of ${taken.length} spans of ${route}`)
    t.same(idsOf(serversOf(route)), idsOf(taken), 'the traces of consistent sampling, and no others')
    const { count, deviation } = extrapolate(serversOf(route))
    isTrueSum(t, count, REQUESTS, deviation, `${route}, by ${taken.length} spans`)
  }
})

async function deliver (app) {
  await until(() => {
    app.lightTrace.flush()
    const { queued, inFlight } = app.lightTrace.stats().spans
    return queued + inFlight === 0
  }, () => JSON.stringify(app.lightTrace.stats()))
}

function isTrueSum (t, count, truth, deviation, what) {
  t.ok(Math.abs(count - truth) < ERRORS_MAX * deviation, `${what}: ${count} of ${truth}; standard error ${Math.round(deviation)}`)
  t.comment(`${what}: ${count} of ${truth}, standard error ${Math.round(deviation)}`)
}

function idsOf (spans) { return spans.map(({ traceId }) => traceId).sort() }

function countsBy (list, keyOf) {
  const counts = {}
  for (const each of list) counts[keyOf(each)] = (counts[keyOf(each)] ?? 0) + 1
  return counts
}

async function sampledApp (t, options) {
  const seen = []
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { serviceName: 'shop', keep: { errors: true, maxPerSecond: 100_000 }, ...options })
  const answer = (isFailed) => async (request) => {
    seen.push({ traceId: request.trace.traceId, isSampled: request.trace.sampled, isFailed })
    await request.trace.withSpan('step', async () => {})
    if (isFailed) throw new TypeError('boom')
    return { ok: true }
  }
  app.get('/users/:id', answer(false))
  app.get('/boom', answer(true))
  await app.ready()
  return { app, seen }
}

async function ask (app, requests, pathOf = (i) => i % (REQUESTS / FAILED) === 0 ? '/boom' : `/users/${i}`) {
  const paths = Array.from({ length: requests }, (_, i) => pathOf(i))
  while (paths.length > 0) {
    await Promise.all(paths.splice(0, AT_ONCE).map((path) => app.inject(path)))
    await pause(2) // otherwise requests come faster than spans are sent
  }
}

/** Returns the spans that arrived behind the tail samplers, or at another path. */
function spansOf (sinks, address = '/v1/traces') {
  return sinks.flatMap((sink) => sink.requests.filter(({ path }) => path === address).flatMap((request) => request.spans))
}

/** Returns the span metrics of a gateway for requests: the newest point of each series. */
function callsOf (sink) {
  const newest = new Map()
  for (const metric of sink.exports.flatMap(({ metrics }) => metrics)) {
    if (metric.name !== 'traces.span.metrics.calls') continue
    for (const { attributes, value } of metric.points) newest.set(JSON.stringify(attributes), { attributes, value: Number(value) })
  }
  return [...newest.values()].filter(({ attributes }) => attributes['span.kind'] === 'SPAN_KIND_SERVER')
}

function sum (points) {
  const total = (some) => some.reduce((all, { value }) => all + value, 0)
  return { all: total(points), failed: total(points.filter(({ attributes }) => attributes['status.code'] === 'STATUS_CODE_ERROR')) }
}

/** Starts two gateways with a sink each. startAgent(address) starts an agent that balances between them. */
async function startGateways (t) {
  const directory = t.testdir({})
  const sinks = [await startMetricSink(t), await startMetricSink(t)]
  const hostnames = []
  for (const [index, { origin }] of sinks.entries()) {
    const to = (endpoint) => ({ endpoint, compression: 'none' })
    const { address } = await startCollector(t, directory, 'gateway.yaml', `gateway-${index}`, (address) => ({
      receivers: { otlp: { protocols: { grpc: { endpoint: address } } } },
      processors: { tail_sampling: { decision_wait: '5s' } },
      connectors: { span_metrics: { metrics_flush_interval: '1s' } },
      exporters: { 'otlp_http/sink': to(origin), 'otlp_http/metrics': to(origin), 'otlp_http/arrived': to(`${origin}/arrived`) },
      service: { pipelines: { 'traces/counted': { exporters: ['span_metrics', 'otlp_http/arrived'] }, traces: { exporters: ['otlp_http/sink'] } }, ...QUIET }
    }), { flags: [TAIL_GATE] })
    hostnames.push(address)
  }
  const startAgent = async (where) => {
    const { address, stop } = await startCollector(t, directory, 'agent.yaml', 'agent', (address) => ({
      receivers: { otlp: { protocols: { http: { endpoint: address } } } },
      exporters: { load_balancing: { resolver: { static: { hostnames } } } },
      service: QUIET
    }), { address: where })
    return { address, url: `http://${address}/v1/traces`, stop }
  }
  return { sinks, startAgent }
}

/** Starts a collector with a file of examples/fleet, and a second file for what is specific to this machine. */
async function startCollector (t, directory, file, name, override, { address, flags = [] } = {}) {
  address ??= `127.0.0.1:${await freePort()}`
  const ours = join(directory, `${name}.yaml`)
  writeFileSync(ours, stringify(override(address)))
  const collector = start(COLLECTOR_OTELCOL, [`--config=${join(FLEET, file)}`, `--config=${ours}`, ...flags])
  t.teardown(() => collector.stop())
  await until(() => !collector.alive() || collector.output().includes('Everything is ready'), () => `${name} did not start\n${collector.output()}`)
  if (!collector.alive()) throw new Error(`${name} has ended\n${collector.output()}`)
  return { address, stop: () => collector.stop() }
}

async function until (holds, otherwise) {
  for (const deadline = Date.now() + DEADLINE_MS; !holds(); await pause(50)) {
    if (Date.now() > deadline) throw new Error(otherwise())
  }
}
