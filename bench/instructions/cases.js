'use strict'

// The cases to count, as data: those of ../cases.js, under short names for the command line.
//
// against   the baseline case
// of        the case's name in ../cases.js
// guard     true: CI counts it and checks its deoptimisations; COUNTED: CI only counts it, without its baseline, which is only Fastify
// warmUp    maximum number of warm-up requests
// requests  minimum number of counted requests
// pipelining    requests in flight per connection; default: one
// connections   number of connections; default: one
// isCollected   false: garbage collection is not in the total. A call leaves so much garbage that a major collection, which takes
//           tens of millions of instructions, happens once in some windows and twice in others
// turns     [without, with]: one process alternates windows of both states, see ../server/call-channels.js. The difference is taken
//           between neighbouring windows, so no baseline is needed. Two processes of one program that makes calls differ by more
//           than the cost of a call's span, in what V8 compiles and in native code

const { cases, others, asksCaller, HEADLINE_NODE } = require('../cases')

const BASE = 'bare'
const COUNTED = 'counted'
// A request that takes several times as many instructions needs fewer repetitions to get compiled. After this many, V8 compiles as few
// functions per 10,000 requests as it does from then on (`--trace-opt`).
const LONG_WARM_UP = 40_000
// Each window includes sending everything that its requests produced. Metrics are collected once a minute, and the requests of a window
// share that cost. Ten thousand are too few: on a busy service it is shared by tens or hundreds of thousands.
const minute = { requests: 40_000 }
const call = { warmUp: LONG_WARM_UP, isCollected: false }
const real = call
const other = { warmUp: 20_000 } // keeps CI short: counts after 15,000 and after 40,000 requests differ by less than two processes do
const callSpan = { ...call, turns: ['nobody', 'spans'], against: null }
const listened = { ...call, turns: ['nobody', 'listened'], against: null }
const pipelined = { pipelining: 10 }
const crowd = { pipelining: 10, connections: 100 }
const often = { route: 'redisOften', delivers: false, warmUp: 3_000 } // each request makes 21 calls

const table = [
  { name: BASE, of: 'bare-kept-tick', label: 'Fastify, a record of nextTick kept', guard: true },
  { name: 'bare-as-it-comes', of: 'bare', label: 'Fastify as it comes' },
  { name: 'hook', of: 'hook-steps', label: '+ a hook that does nothing', options: { steps: 1 } },
  { name: 'hook-record', of: 'hook-steps', label: '+ a record on request and response', options: { steps: 2 } },
  { name: 'hook-context', of: 'hook-steps', label: '+ `enterWith`', options: { steps: 3 } },
  { name: 'floor', of: 'hook-steps', label: 'The floor: + a `close` listener', options: { steps: 4 } },
  { name: 'hook-clock', of: 'hook-steps', label: '+ the clock, twice', options: { steps: 5 } },
  { name: 'disabled', of: 'lighttrace-off', label: 'light-trace, OTEL_SDK_DISABLED', guard: true },
  { name: 'unsampled', of: 'lighttrace-unsampled', label: 'light-trace, no request sampled', guard: true },
  // The warm-up fills the recorder's ring a few times.
  { name: 'recorded', of: 'lighttrace-unsampled', against: 'unsampled', label: 'light-trace, no request sampled, with the recorder', options: { plugin: { sampler: 'always_off', keep: { recorder: true } } } },
  { name: 'not-sent', of: 'lighttrace-100', label: "light-trace, `exporter: 'none'`", options: { plugin: { exporter: 'none' } }, delivers: false },
  { name: 'delivered', of: 'lighttrace-100', label: 'light-trace, every request', guard: true },
  { name: 'beside', of: 'lighttrace-beside', against: 'delivered' },
  { name: 'unrouted', of: 'lighttrace-100', against: 'delivered', label: 'light-trace, every request, `spans.unrouted`', options: { plugin: { spans: { unrouted: true } } } },
  { name: 'omitted', of: 'lighttrace-100', against: 'delivered', label: 'light-trace, every request, with `omitAttributes`', options: { plugin: { omitAttributes: ['client.address', 'network.peer.*', 'user_agent.original', 'url.query'] } } },
  // Under callgrind every beat is late. The threshold is too high to reach, so no stack is requested.
  { name: 'blocked-loop', of: 'lighttrace-100', against: 'delivered', label: 'light-trace, every request, `slow.blockedLoop`', options: { plugin: { slow: { blockedLoop: { afterMs: 600_000 } } } } },
  { name: 'delivered-long', of: 'lighttrace-100', label: 'light-trace, every request', ...minute },
  { name: 'metrics', of: 'lighttrace-100', against: 'delivered-long', label: 'light-trace, every request, with metrics', options: { plugin: { metrics: true } }, ...minute },
  { name: 'unsampled-long', of: 'lighttrace-unsampled', label: 'light-trace, no request sampled', ...minute },
  { name: 'metrics-unsampled', of: 'lighttrace-unsampled', against: 'unsampled-long', ...minute, label: 'light-trace, no request sampled, with metrics', options: { plugin: { sampler: 'always_off', metrics: true } } },
  // The baseline has 1 % sampled, so that both processes have a connection to the collector, with and without metrics.
  { name: 'one-percent', of: 'lighttrace-1', ...minute },
  // Under callgrind so few requests run per second that this limit samples a tenth of them.
  { name: 'per-second', of: 'lighttrace-1', against: 'one-percent', label: 'light-trace, `sampler: { perSecond: 10 }`', options: { plugin: { sampler: { perSecond: 10 } } }, spans: { least: 1e-6 }, ...minute },
  { name: 'keep-errors', of: 'lighttrace-unsampled', against: 'unsampled', label: 'light-trace, no request sampled, `keep: { errors: true }`', options: { plugin: { sampler: 'always_off', keep: { errors: true } } } },
  ...[[1, 'one value'], [100, 'a hundred values in turn'], [1e9, 'a new value each time']].map(([tenants, values]) => (
    { name: `metrics-tenants-${tenants}`, of: 'lighttrace-100', against: 'metrics', label: `light-trace, every request, with \`metrics.attributes\`: ${values}`, options: { tenants }, ...minute })),
  { name: 'metrics-one-percent', of: 'lighttrace-1', against: 'one-percent', label: 'light-trace, 1 % sampled, with metrics', options: { plugin: { sampler: 0.01, metrics: true } }, ...minute },
  { name: 'down', of: 'lighttrace-down-below-half', label: 'light-trace, collector down, buffer below half', isCollected: false },
  { name: 'bare-traceparent', of: 'bare-kept-tick', label: 'Fastify, with a traceparent', like: 'lighttrace-traceparent' },
  { name: 'traceparent', of: 'lighttrace-traceparent', against: 'bare-traceparent', label: 'light-trace, with a traceparent' },
  { name: 'bare-logger', of: 'bare-kept-tick', label: 'Fastify, logger on', options: { logger: true } },
  { name: 'logger', of: 'lighttrace-logs', against: 'bare-logger', label: 'light-trace, logger on' },
  { name: 'bare-attributes', of: 'bare-kept-tick', label: 'Fastify', like: 'lighttrace-attributes' },
  { name: 'attributes', of: 'lighttrace-attributes', against: 'bare-attributes', label: 'light-trace, twenty attributes and a child span' },
  // The real request. Its metrics are collected once per window.
  { name: 'bare-real', of: 'bare-real', against: null, ...real },
  { name: 'floor-real', of: 'floor-real', against: 'bare-real', ...real },
  { name: 'real', of: 'lighttrace-real', against: 'bare-real', guard: COUNTED, ...real },
  { name: 'real-unsampled', of: 'lighttrace-real-unsampled', against: 'bare-real', ...real },
  { name: 'stock-real', of: 'stock-real', against: 'bare-real', ...real },
  ...['proxied', 'pg', 'pg-texts', 'fetch'].flatMap((name) => [
    { name: `bare-real-${name}`, of: `bare-real-${name}`, against: null, ...real },
    { name: `floor-real-${name}`, of: `floor-real-${name}`, against: `bare-real-${name}`, ...real },
    { name: `real-${name}`, of: `lighttrace-real-${name}`, against: `bare-real-${name}`, ...real }
  ]),
  // The cost of a cache miss in the hot path, where values do not repeat.
  ...others.flatMap((name) => [
    { name: `bare-${name}`, of: `bare-${name}`, against: null, ...other },
    { name, of: `lighttrace-${name}`, against: `bare-${name}`, guard: guardOf(name), ...other }
  ]),
  // The load of bench/seeds.js: ten requests in flight on one connection, then on each of a hundred.
  { name: 'bare-pipelined', of: 'bare-kept-tick', against: null, label: 'Fastify, ten pipelined', ...pipelined },
  { name: 'floor-pipelined', of: 'hook-steps', against: 'bare-pipelined', label: 'The floor, ten pipelined', options: { steps: 4 }, ...pipelined },
  { name: 'unsampled-pipelined', of: 'lighttrace-unsampled', against: 'bare-pipelined', label: 'light-trace, no request sampled, ten pipelined', guard: COUNTED, ...pipelined },
  { name: 'pipelined', of: 'lighttrace-100', against: 'bare-pipelined', label: 'light-trace, every request, ten pipelined', guard: COUNTED, ...pipelined },
  { name: 'pipelined-long', of: 'lighttrace-100', against: 'bare-pipelined', label: 'light-trace, every request, ten pipelined', ...pipelined, ...minute },
  { name: 'metrics-pipelined', of: 'lighttrace-100', against: 'pipelined-long', label: 'light-trace, every request, with metrics, ten pipelined', options: { plugin: { metrics: true } }, ...pipelined, ...minute },
  { name: 'bare-crowd', of: 'bare-kept-tick', against: null, label: 'Fastify, ten pipelined on each of a hundred connections', ...crowd },
  { name: 'floor-crowd', of: 'hook-steps', against: 'bare-crowd', label: 'The floor, ten pipelined on each of a hundred connections', options: { steps: 4 }, ...crowd },
  { name: 'crowd', of: 'lighttrace-100', against: 'bare-crowd', label: 'light-trace, every request, ten pipelined on each of a hundred connections', ...crowd },
  { name: 'bare-real-pipelined', of: 'bare-real', against: null, label: 'Fastify, a real request, ten pipelined', ...real, ...pipelined },
  { name: 'floor-real-pipelined', of: 'floor-real', against: 'bare-real-pipelined', label: 'The floor of a real request, ten pipelined', ...real, ...pipelined },
  { name: 'real-pipelined', of: 'lighttrace-real', against: 'bare-real-pipelined', label: 'light-trace, a real request, ten pipelined', ...real, ...pipelined },
  { name: 'bare-light-load', of: 'bare-light-load', against: null, ...other },
  { name: 'light-load', of: 'lighttrace-light-load', against: 'bare-light-load', ...other },
  { name: 'bare-lines', of: 'bare-lines', against: null, ...other },
  { name: 'lines', of: 'lighttrace-lines', against: 'bare-lines', ...other },
  { name: 'lines-exported', of: 'lighttrace-lines-exported', against: 'lines', ...other },
  { name: 'stock-lines-exported', of: 'stock-lines-exported', against: 'bare-lines', ...other },
  { name: 'debug', of: 'lighttrace-debug', against: null, ...other },
  { name: 'debug-held', of: 'lighttrace-debug-held', against: 'debug', ...other },
  { name: 'debug-printed', of: 'lighttrace-debug-printed', against: 'debug', ...other },
  ...asksCaller.map((name) => ({ name: `asks-${name}`, of: `asks-${name}`, against: `bare-${name}`, ...other })),
  { name: 'throws-stack', of: 'bare-throws-stack', against: 'bare-throws', ...other },
  { name: 'redis', of: 'lighttrace-redis', label: 'light-trace, one Redis GET: its span', ...callSpan },
  { name: 'redis-other', of: 'lighttrace-redis', label: 'light-trace, one of four Redis commands in turn, with a new key each time: its span', ...callSpan, route: 'redisOther' },
  { name: 'redis-listened', of: 'lighttrace-redis', label: 'the same, with only a subscriber that does nothing', ...listened },
  { name: 'redis-often', of: 'lighttrace-redis', label: 'light-trace, 21 Redis GETs: their spans', ...callSpan, ...often },
  { name: 'redis-folded', of: 'lighttrace-redis', label: 'the same, all but the first folded', options: { plugin: { outbound: { fold: { after: 1 } } } }, ...callSpan, ...often },
  { name: 'redis-often-listened', of: 'lighttrace-redis', label: 'the same, with only a subscriber that does nothing', ...listened, ...often },
  { name: 'fetch', of: 'lighttrace-outbound', label: 'light-trace, one fetch: its span', route: 'fetch', ...callSpan },
  { name: 'fetch-listened', of: 'lighttrace-outbound', label: 'the same, with only subscribers that do nothing', route: 'fetch', ...listened },
  { name: 'fastify-metrics', of: 'fastify-metrics' },
  { name: 'sdk2-by-hand', of: 'sdk2-by-hand', warmUp: LONG_WARM_UP },
  { name: 'fastify-otel', of: 'fastify-otel', warmUp: LONG_WARM_UP },
  { name: 'nodesdk-http', of: 'nodesdk-http', warmUp: LONG_WARM_UP }
].map(withCase)

module.exports = { table, chooseCases, guarded, examined, HEADLINE_NODE }

// CI leaves out the others: they are variants of these, or of the hello world.
function guardOf (name) {
  return ['proxied', 'fresh', 'query', 'propagated', 'throws'].includes(name) && COUNTED
}

// like: the case whose route and headers a baseline takes
function withCase ({ of, like, options, route, label, delivers, spans, against = BASE, guard = false, isCollected = true, warmUp = Infinity, requests = 0, pipelining = 1, connections = 1, turns, name }) {
  const found = caseNamed(of)
  const request = like === undefined ? found : caseNamed(like)
  return {
    ...found,
    name,
    against,
    guard,
    isCollected,
    warmUp,
    requests,
    pipelining,
    connections,
    turns,
    label: label ?? found.label,
    options: options ?? found.options,
    route: route ?? request.route ?? 'hello',
    headers: request.headers,
    isFresh: request.isFresh,
    service: request.service,
    needs: request.needs ?? found.needs,
    delivers: delivers ?? found.delivers,
    spans: spans ?? found.spans
  }
}

/** The names of the cases whose deoptimisations CI checks. */
function examined () {
  return table.filter(({ guard }) => guard === true).map(({ name }) => name)
}

/** The names of the cases that CI counts. */
function guarded () {
  return table.filter(({ guard }) => guard !== false).map(({ name }) => name)
}

function caseNamed (name) {
  const found = cases.find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`bench/cases.js has no case "${name}"`)
  return found
}

/** @param {string[] | undefined} names default: all. Keeps their order, and puts each after its baseline. */
function chooseCases (names) {
  if (names === undefined) return table
  const wanted = new Set()
  for (const name of names) {
    const found = table.find((candidate) => candidate.name === name)
    if (found === undefined) throw new Error(`no case is called "${name}"; there are ${table.map(({ name }) => name).join(', ')}`)
    if (found.turns === undefined && found.against !== null) wanted.add(found.against)
    wanted.add(name)
  }
  return Array.from(wanted, (name) => table.find((candidate) => candidate.name === name))
}
