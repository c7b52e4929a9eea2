'use strict'

// Two tiers of a real OpenTelemetry Collector, by the files of examples/fleet: an agent balances by trace id between
// two gateways, which count spans and then take a part of the traces. At the end the sums have to be those of the
// requests that were sent. What the gateways export is read by a decoder that is not ours.

const { writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { setTimeout: pause } = require('node:timers/promises')
const { test, setTimeout: setDeadline } = require('tap')
const Fastify = require('fastify')
const { stringify } = require('yaml')
const lightTrace = require('../..')
const { start } = require('../../scripts/run')
const { freePort } = require('../../scripts/free-port')
const { extrapolate, probabilityOf } = require('../support/extrapolation')
const { startMetricSink } = require('../support/metric-sink')

setDeadline(240_000)

const { COLLECTOR_OTELCOL } = process.env
const FLEET = join(__dirname, '..', '..', 'examples', 'fleet')
const DEADLINE_MS = 60_000
const REQUESTS = 4000
const FAILED = 40
const AT_ONCE = 50
const TAIL_THRESHOLD = 'e0000000000000' // sampling_percentage: 12.5 of gateway.yaml
const QUIET = { telemetry: { metrics: { level: 'none' } } } // or each would listen on port 8888

test('an agent and two gateways: whole traces come to one gateway, and sums at the end are those of the requests', async (t) => {
  const directory = t.testdir({})
  const sinks = [await startMetricSink(t), await startMetricSink(t)]
  const gateways = []
  for (const [index, sink] of sinks.entries()) gateways.push(await startGateway(t, directory, index, sink))
  const { app, seen } = await sampledApp(t, await startAgent(t, directory, gateways))
  await ask(app)
  await app.lightTrace.flush()
  const { delivered, accepted } = app.lightTrace.stats().spans
  t.equal(delivered, accepted, 'the agent took everything')

  const sampled = seen.filter(({ isFailed, isSampled }) => isSampled && !isFailed)
  t.same([seen.length, seen.filter(({ isFailed }) => isFailed).length], [REQUESTS, FAILED])
  const counted = () => sum(sinks.flatMap(callsOf))
  await until(() => counted().all >= sampled.length * 4 + FAILED, () => `span metrics: ${JSON.stringify(counted())}`)
  t.same(counted(), { all: sampled.length * 4 + FAILED, failed: FAILED }, 'span metrics: a span counts as many as it stands for, the failed ones once')
  t.ok(Math.abs(counted().all - REQUESTS) < 5 * Math.sqrt((REQUESTS - FAILED) * 3), `span metrics: ${counted().all} of ${REQUESTS}`) // a quarter of them: the variance of each is (1 - p) / p

  const taken = seen.filter(({ traceId, isFailed }) => isFailed || traceId.slice(-14) >= TAIL_THRESHOLD)
  await until(() => spansOf(sinks).length >= taken.length * 2, () => `${spansOf(sinks).length} of ${taken.length * 2} spans`)
  const servers = spansOf(sinks).filter(({ kind }) => kind === 'SERVER')
  t.same(servers.map(({ traceId }) => traceId).sort(), taken.map(({ traceId }) => traceId).sort(), 'what consistent sampling says, and no other trace')
  const [failed, whole] = [true, false].map((isFailed) => servers.filter(({ status }) => (status.code === 'ERROR') === isFailed))
  const { count, deviation } = extrapolate(whole)
  t.ok(Math.abs(count - (REQUESTS - FAILED)) < 5 * deviation, `${count} of ${REQUESTS - FAILED} requests, by ${whole.length} spans; deviation ${deviation}`)
  t.same([...new Set(whole.map(({ traceState }) => probabilityOf(traceState)))], [0.125], 'the tail sampler has raised the threshold of the sampler')
  t.same(extrapolate(failed), { count: FAILED, deviation: 0 }, 'each failed request stands for itself')

  const [first, second] = sinks.map((sink) => new Set(spansOf([sink]).map(({ traceId }) => traceId)))
  t.ok(first.size > 0 && second.size > 0, 'each gateway has a part')
  t.notOk([...first].some((traceId) => second.has(traceId)), 'and a trace is at one')
  t.same(spansOf(sinks).filter(({ kind }) => kind === 'INTERNAL').map(({ traceId }) => traceId).sort(), taken.map(({ traceId }) => traceId).sort(), 'with its child')
})

async function sampledApp (t, url) {
  const seen = []
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { serviceName: 'shop', exporter: { url }, sampler: 0.25, keep: { errors: true, maxPerSecond: 100_000 } })
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

async function ask (app) {
  const paths = Array.from({ length: REQUESTS }, (_, i) => i % (REQUESTS / FAILED) === 0 ? '/boom' : `/users/${i}`)
  while (paths.length > 0) await Promise.all(paths.splice(0, AT_ONCE).map((path) => app.inject(path)))
}

function spansOf (sinks) {
  return sinks.flatMap((sink) => sink.requests.filter(({ path }) => path === '/v1/traces').flatMap((request) => request.spans))
}

/** What a gateway's span metrics say of requests: the newest point of each series. */
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

function startGateway (t, directory, index, sink) {
  return startCollector(t, directory, 'gateway.yaml', `gateway-${index}`, (address) => ({
    receivers: { otlp: { protocols: { grpc: { endpoint: address } } } },
    processors: { tail_sampling: { decision_wait: '1s' } },
    connectors: { span_metrics: { metrics_flush_interval: '1s' } },
    exporters: { 'otlp_http/sink': { endpoint: sink.origin, compression: 'none' }, 'otlp_http/metrics': { endpoint: sink.origin, compression: 'none' } },
    service: { pipelines: { traces: { exporters: ['otlp_http/sink'] } }, ...QUIET }
  }), ['--feature-gates=processor.tailsamplingprocessor.usetracestate'])
}

async function startAgent (t, directory, hostnames) {
  const address = await startCollector(t, directory, 'agent.yaml', 'agent', (address) => ({
    receivers: { otlp: { protocols: { http: { endpoint: address } } } },
    exporters: { load_balancing: { resolver: { static: { hostnames } } } },
    service: QUIET
  }))
  return `http://${address}/v1/traces`
}

/** A collector by a file of examples/fleet, and a second one that has what is of this machine. */
async function startCollector (t, directory, file, name, override, flags = []) {
  const address = `127.0.0.1:${await freePort()}`
  const ours = join(directory, `${name}.yaml`)
  writeFileSync(ours, stringify(override(address)))
  const collector = start(COLLECTOR_OTELCOL, [`--config=${join(FLEET, file)}`, `--config=${ours}`, ...flags])
  t.teardown(() => collector.stop())
  await until(() => !collector.alive() || collector.output().includes('Everything is ready'), () => `${name} did not start\n${collector.output()}`)
  if (!collector.alive()) throw new Error(`${name} has ended\n${collector.output()}`)
  return address
}

async function until (holds, otherwise) {
  for (const deadline = Date.now() + DEADLINE_MS; !holds(); await pause(50)) {
    if (Date.now() > deadline) throw new Error(otherwise())
  }
}
