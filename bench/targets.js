'use strict'

// The cost targets, as data; bench/RESULTS.md shows them.
//
// measured          (results) => { median, min, max }, where min…max is the figure's own interval; null if it was not measured.
//                   results: the results files by name, as report/publish.js reads them
// atMost, atLeast   the target; neither: the figure is published without one
// why               explains a missed target: what the cost consists of, and why it stays. No figures: those are in the tables

const { HEADLINE_NODE } = require('./cases')
const { KINDS } = require('./instructions/callgrind')

const MB = 1e6
const PERCENT = 100
const GC = KINDS.indexOf('gc')

const STREAMS = "the collector's socket: from then on, Node's stream functions serve two classes of sockets and have to check for both, as with any connection that an application opens"
const WAITS = 'a response that waits for its turn is tracked until then, so its span and context survive a young-generation collection, which copies them'
const YOUNG = "most of it is V8's young generation. V8 doubles it when the objects that survived its collections add up to its size; Fastify alone gets there after many times as many requests"

const targets = [
  ...byInstructions([
    ['ten pipelined, over bare', 5800, of('pipelined'), 'as one at a time; a waiting response has one more object and a `finish` listener'],
    ['ten pipelined, no request sampled, over bare', 2500, of('unsampled-pipelined'), 'as one at a time, and a `finish` listener, so that other listeners run in the context of their own request'],
    ['a real request, over bare', 22500, of('real'), 'three spans, each with ids, timestamps and bytes; the floor: what node-redis, pino and Node do as soon as any code subscribes, writes ids or enters a context; and metrics'],
    ['a real request, over its floor', undefined, of('real', 'floor-real'), 'as above'],
    ['a real request that its caller did not sample, over bare', 14000, of('real-unsampled'), 'the floor; the hook, the trace headers and the ids; metrics, which follow the request and its call to their ends, with what node-redis does as soon as any code subscribes; and the connection to the collector'],
    ['another user agent with each request, over bare', 8000, of('agents'), 'the attributes of the client are encoded again'],
    ['`trustProxy` and another client with each request, over bare', 9300, of('proxied'), "Fastify's getters for ip, host and protocol parse the forwarded headers each time"],
    ['a connection for each request, over bare', 15500, of('fresh'), 'the kernel is asked for address and port, and all attributes of the connection are encoded again'],
    ['a query, over bare', 8000, of('query'), 'each name and value is checked for credentials, and path and query are two attributes'],
    ['every request sampled and delivered, over bare', 5200, of('delivered'), `the floor, which every tracer needs; the span; its bytes; and ${STREAMS}`],
    ['no request sampled, over bare', 1900, of('unsampled'), 'the hook, the record and the context of the floor; the route, the trace headers, the sampler, and ids for outgoing calls'],
    ['off (`OTEL_SDK_DISABLED`), over bare', 1000, of('disabled'), 'a request still has `request.trace` and its context, which pass on a caller\'s trace: the hook, the record and the context of the floor'],
    ["with a caller's `traceparent`, more than without", 400, of('traceparent', 'delivered'), 'the header is copied into memory, and each character is checked'],
    ['collector down, buffer below half, more than delivered', 300, of('down', 'delivered'), 'spans that are not sent stay in memory, which has to be allocated; and a few attempts to connect. Not included: V8 collects its whole heap after every 8 MiB or so of new external memory, which happens twice until the buffer is half full, and rarely after that'],
    ['with metrics, sampled, more than without', 250, of('metrics'), 'finding the series of the route and status, and updating its sum, count, bucket and exemplar; and a share of collecting the metrics'],
    ['with metrics, no request sampled, more than without', 1500, of('metrics-unsampled'), 'without metrics, nothing follows an unsampled request to its end. With metrics, it has a record, a `close` listener, a second clock reading, and a connection to the collector']
  ]),
  ...byInstructions([['Node 26: every request sampled and delivered, over bare', undefined, of('delivered'), 'as on Node 24']], 26),
  ...byInstructions([['Node 22: a real request, over its floor', undefined, of('real', 'floor-real'), 'as on Node 24, and async_hooks, which follow the context']], 22),
  ...byInstructions([['Node 20: a real request, over its floor', undefined, of('real', 'floor-real'), 'as on Node 22']], 20),
  ...byInstructions([
    ['Node 22: every request sampled and delivered, over the floor', undefined, of('delivered', 'floor'), 'light-trace enters the context by `run`, because on async_hooks the `enterWith` of the floor would leave it on the connection, where the next request could see it; and async_hooks follow the export too'],
    ['Node 22: the floor, with its async_hooks, over bare', undefined, of('floor')]
  ], 22),
  ...byInstructions([
    ['Node 20: every request sampled and delivered, over the floor', undefined, of('delivered', 'floor')],
    ['Node 20: the floor, with its async_hooks, over bare', undefined, of('floor')]
  ], 20),
  { label: "NodeSDK with http, @fastify/otel, redis and pino, a real request, as a multiple of light-trace's cost", unit: '× the instructions', measured: timesOurs('stock-real', 'real'), why: 'both include the floor' },
  { label: 'ten in flight on each of a hundred connections: throughput', unit: '× bare', digits: 2, atLeast: 0.91, measured: ofSeeds(10, 'relativeRps'), why: WAITS },
  { label: 'the same: CPU time', unit: '× bare', digits: 2, atMost: 1.12, measured: ofSeeds(10, 'relativeCpu'), why: WAITS },
  { label: 'one at a time on each: throughput', unit: '× bare', digits: 2, atLeast: 0.95, measured: ofSeeds(1, 'relativeRps'), why: 'the server has one core and nothing else to do, so throughput falls as CPU time rises; the collector shares a core with the load' },
  { label: 'the same: CPU time', unit: '× bare', digits: 2, atMost: 1.07, measured: ofSeeds(1, 'relativeCpu'), why: `the instructions above, and access to memory: a span is written once and read once by the kernel; and ${STREAMS}` },
  { label: 'the same: RSS at full load, over bare', unit: 'MB', digits: 0, atMost: 30, measured: ofSeeds(1, 'overRssMB'), why: YOUNG },
  { label: 'functions that V8 deoptimises, more than in bare', unit: 'functions', digits: 0, atMost: 5, measured: ({ v8 }) => single(row(v8, 'delivered')?.over.deoptimisations), why: `${STREAMS}; V8 discards code that it had compiled for one class only` },
  { label: 'bytes allocated, over the floor', unit: 'bytes', digits: 0, atMost: 400, measured: ({ v8 }) => single(row(v8, 'delivered')?.bytes - row(v8, 'floor')?.bytes), why: 'context and span are objects with a field for each thing that they store' },
  { label: 'start, more instructions than Fastify alone', unit: '%', digits: 1, atMost: 8, measured: ({ startupInstructions }) => single(PERCENT * startupInstructions?.rows['lighttrace-100'].ready[2]), why: 'a registration loads what its options, hooks and first request need; otherwise the first request would have to wait' },
  { label: 'installed size of light-trace and fastify-plugin', unit: 'MB', digits: 2, atMost: 1, measured: ({ sizes }) => single(sizes?.installedBytes.lighttrace / MB), why: 'it includes the viewer, types and documentation' }
]

module.exports = { targets, row, seedsOf, judge }

/** @returns {{ measured: object | null, verdict: 'reached' | 'missed' | 'within the interval' | '' }} 'within the interval': the interval contains the bound */
function judge (target, results) {
  const measured = target.measured(results)
  if (!measured) return { measured: null, verdict: '' }
  return { measured, verdict: verdictOf(target, measured) }
}

function verdictOf ({ atMost, atLeast }, { min, max }) {
  if (atMost === undefined && atLeast === undefined) return ''
  if ((atMost === undefined || max <= atMost) && (atLeast === undefined || min >= atLeast)) return 'reached'
  return min > atMost || max < atLeast ? 'missed' : 'within the interval'
}

function row (result, name) {
  return result?.rows.find((candidate) => candidate.name === name)
}

/** A table of bench/results/seeds.json, by route, pipelining and Node major; undefined if it was not measured. */
function seedsOf (seeds, wanted, inFlight, major) {
  return seeds?.tables.find(({ route, node, profile: { connections, pipelining } }) => route === wanted && connections === 100 && pipelining === inFlight && node.startsWith(`v${major}.`))
}

// In instructions. A row that was counted in only one process has no interval.
function byInstructions (list, major = HEADLINE_NODE) {
  return list.map(([label, atMost, pick, why]) => ({
    label,
    unit: 'instructions',
    digits: 0,
    atMost,
    measured: ({ instructions }) => pick((name) => row(instructions?.nodes[major], name)),
    why
  }))
}

// The cost of a case over its baseline, minus the cost of `without` over its own baseline. If only the case was counted without garbage
// collection, the collector's share is taken out of `without` too.
function of (name, without) {
  return (rowOf) => {
    const found = rowOf(name)
    if (!found?.over) return null
    if (without === undefined) return interval(found.over)
    const { over: base, isCollected = true, kinds } = rowOf(without) ?? {}
    if (!base) return null
    const gc = found.isCollected === false && isCollected ? kinds[GC] : 0
    const halves = [found.over[1], base[1]]
    return interval([found.over[0] - (base[0] - gc), halves.includes(undefined) ? undefined : Math.hypot(...halves)])
  }
}

// A rival's cost over bare, as a multiple of light-trace's.
function timesOurs (rival, ours = 'delivered') {
  return ({ instructions }) => {
    const [theirs, own] = [rival, ours].map((name) => row(instructions?.nodes[HEADLINE_NODE], name)?.over?.[0])
    return single(theirs / own)
  }
}

// The seeds' tables have no interval of their own. This takes the median of the rounds, which vary more than the median does.
function ofSeeds (pipelining, figure) {
  return ({ seeds }) => single([seedsOf(seeds, 'hello', pipelining, HEADLINE_NODE)?.rows.find(({ name }) => name === 'lighttrace-100')?.[figure]].flat()[0])
}

// The half width is unknown when there was only one process.
function interval ([median, halfWidth = 0]) {
  return { median, min: median - halfWidth, max: median + halfWidth }
}

function single (value) {
  return Number.isFinite(value) ? interval([value]) : null
}
