'use strict'

// Makes the tables of request cost: the README's, and those of docs/overhead.md and bench.

const { table, withSpread } = require('./markdown')
const { others, HEADLINE_NODE } = require('../cases')
const { table: countedCases } = require('../instructions/cases')
const { row, seedsOf } = require('../targets')
const { codeOf } = require('../run/code')
const { provenance } = require('./tables')

module.exports = { readmeTable, readmeRows, realTable, othersTable, answer, addedTable, nodesTable, instructionsTable, stepsTable, deoptimisationsTable, nextTickTable }

// [label, name in the seeds' tables, name of the row with the real request]
const COMPARED = [
  ['**light-trace**', /^lighttrace-/, 'real'],
  ['@fastify/otel', /^fastify-otel/],
  ['NodeSDK with auto-instrumentations and @fastify/otel', /^nodesdk-/, 'stock-real']
]

/**
 * The README's table. Each way of tracing is a row, with the benchmark that most people run and a real request. The rest is in
 * docs/overhead.md and bench/RESULTS.md.
 * @param {Record<string, any>} results the results files by name, as in targets.js
 */
function readmeTable ({ instructions, seeds }) {
  const [pipelined, single] = [10, 1].map((pipelining) => seedsOf(seeds, 'hello', pipelining, HEADLINE_NODE))
  const rows = rowsOf(instructions, HEADLINE_NODE)
  const { rounds, connections } = pipelined.profile
  const throughput = (result) => ([, name]) => withSpread(result.rows.find((found) => name.test(found.name)).relativeRps.map((part) => 100 * part), 0).replace(' ', ' % ')
  return [
    table([
      ['', ([label]) => label],
      ['throughput, 10 in flight per connection', throughput(pipelined), 'right'],
      ['throughput, one at a time', throughput(single), 'right'],
      ['instructions of a real request', ([, , name]) => name === undefined ? 'not counted' : `+${percent(row({ rows }, name))}`, 'right']
    ], COMPARED),
    '',
    `Relative to Fastify without tracing. Throughput: a hello world over ${connections} connections, all spans delivered; median (least…greatest) of ${rounds} rounds. A real request has a JSON body, a logger, a \`traceparent\`, two attributes, a child span, a Redis GET and metrics. For it, NodeSDK has the instrumentations for http, Fastify, Redis and pino. ${provenance(pipelined, codeOf([pipelined, single, row({ rows }, 'real')]))}`
  ].join('\n')
}

/** The README's rows that measure light-trace: they must belong to the current code. → [{ name, commit, hot }] */
function readmeRows ({ instructions, seeds }) {
  const tables = [10, 1].map((pipelining) => seedsOf(seeds, 'hello', pipelining, HEADLINE_NODE) ?? { name: `hello -p ${pipelining}: it is not there` })
  return [...tables, { ...row({ rows: rowsOf(instructions, HEADLINE_NODE) }, 'real'), name: 'a real request' }]
}

// [label, row], shown for each Node
const REAL_ROWS = [
  ['**Fastify without a tracer**', 'bare-real'],
  ['The floor: a context, a `close` listener, ids in log lines, a subscriber to the calls', 'floor-real'],
  ['**light-trace**', 'real'],
  ['light-trace, not sampled by its caller', 'real-unsampled'],
  ['NodeSDK with http, @fastify/otel, redis, pino and metrics', 'stock-real'],
  ['Fastify with `trustProxy`, another client each time', 'bare-real-proxied'],
  ['**light-trace**, the same', 'real-proxied'],
  ['Fastify, a PostgreSQL query instead of the GET', 'bare-real-pg'],
  ['The floor of this request', 'floor-real-pg'],
  ['light-trace, with `traceClient`', 'real-pg'],
  ['Fastify, a fetch instead of the GET', 'bare-real-fetch'],
  ['The floor of this request', 'floor-real-fetch'],
  ['light-trace', 'real-fetch']
]

/** The real request, on each Node that was measured. */
function realTable (instructions) {
  const counted = realRows(instructions)
  const { processes } = counted.find(({ name }) => name === 'real')
  return [
    table([
      ['', ({ label }) => label],
      ['instructions per request', ({ total }) => withHalfWidth(total), 'right'],
      ['more than Fastify', ({ over, total }) => over === undefined ? '' : `${signedCount(over[0])} (${percent({ total, over })})`, 'right']
    ], counted),
    '',
    `The percentages are smaller for requests that do more. ${processes > 1 ? `${processes} processes each on Node 24, one on the others. ` : ''}Node ${[...new Set(counted.map(({ node }) => node.slice(1)))].join(', ')}, ${codeOf(counted)}.`
  ].join('\n')
}

function realRows (instructions) {
  const nodes = [24, 26, '22-frames', 22, 20].filter((major) => instructions.nodes[major] !== undefined)
  return nodes.flatMap((major) => {
    const { node, rows } = instructions.nodes[major]
    return REAL_ROWS.filter(([, name]) => row({ rows }, tracedOf(name)) !== undefined)
      .map(([label, name]) => ({ ...row({ rows }, name), node, label: `${label}, Node ${nodeName(major)}` }))
      .filter(({ total }) => total !== undefined)
  })
}

/** The light-trace row that belongs to a row. A baseline is shown only together with it. */
function tracedOf (name) {
  return name.replace(/^(?:bare|floor|stock)-|-unsampled$/g, '')
}

/** '22-frames': see bench/run/binaries.js. */
function nodeName (major) {
  return major === '22-frames' ? '22 with `--experimental-async-context-frame`' : major
}

// Cases of bench/cases.js in which a cache of the connection, client or route does not help.
const OTHER_ROWS = [['delivered', 'one client, the same request again and again'], ...others.map((name) => [name, undefined])]

/** The cost of a hello world when requests differ from each other. */
function othersTable (instructions) {
  const rows = rowsOf(instructions, HEADLINE_NODE)
  const counted = OTHER_ROWS.map(([name, label = labelOf(name)]) => ({ ...row({ rows }, name), label })).filter(({ total }) => total !== undefined)
  return [
    table([
      ['a hello world, sampled and delivered', ({ label }) => label.replace('light-trace, ', '')],
      ['Fastify', ({ total: [all], over: [more] }) => thousands(all - more), 'right'],
      ['light-trace', ({ total: [all] }) => thousands(all), 'right'],
      ['more', ({ over: [more] }) => signedCount(more), 'right']
    ], counted),
    '',
    `Instructions per request. Node ${instructions.nodes[HEADLINE_NODE].node.slice(1)}, ${codeOf(counted)}.`
  ].join('\n')
}

function labelOf (wanted) {
  return countedCases.find(({ name }) => name === wanted).label
}

function rowsOf ({ nodes }, major) {
  return nodes[major].rows
}

/** Relative to the baseline, as counted in the same run. */
function percent ({ total: [all], over: [more] }) {
  return `${(100 * more / (all - more)).toFixed(0)} %`
}

/**
 * The introduction of docs/overhead.md: the cost for a busy service, the same in instructions, then memory and start.
 * @param {Record<string, any>} results the results files by name, as in targets.js
 */
function answer ({ instructions, seeds, startupInstructions, sizes }) {
  const { rows } = instructions.nodes[HEADLINE_NODE]
  const [hello, checkout] = ['hello', 'checkout'].map((route) => seedsOf(seeds, route, 10, HEADLINE_NODE).rows)
  const ours = (rows) => rows.find(({ name }) => /^lighttrace-/.test(name))
  const fastifys = ([{ cpuMicrosPerRequest: [median] }]) => coreShare(median)
  const [floor, real, unsampled, stock] = ['floor-real', 'real', 'real-unsampled', 'stock-real'].map((name) => percent(row({ rows }, name)))
  const { overMicros, overRssMB, requests } = ours(hello)
  return [
    `- **At 10,000 requests a second**, light-trace takes **${coreShare(overMicros)} of a core** for a hello world, where Fastify itself takes ${fastifys(hello)}. For a request with a JSON body, log lines, a Redis call, metrics and three spans it takes ${coreShare(ours(checkout).overMicros)}, and Fastify ${fastifys(checkout)}.`,
    `- **In instructions**, which do not depend on the load of the machine, this second request takes ${real} more with light-trace, ${unsampled} more if it is not sampled, and ${stock} more with OpenTelemetry's own instrumentations. Any tracer needs about ${floor}.`,
    `- **Memory**: ${overRssMB.toFixed(0)} MB over Fastify's own after ${thousands(requests / 1000)},000 requests at full load. **Start**: ${(100 * startupInstructions.rows['lighttrace-100'].ready[2]).toFixed(0)} % more instructions. **Disk**: ${(sizes.installedBytes.lighttrace / 1e6).toFixed(1)} MB.`
  ].join('\n')
}

/** Converts microseconds per request to the share of a core, at 10,000 requests per second. */
function coreShare (micros) {
  return `${Math.round(micros)} %`
}

// [label, row of the instructions]
const ADDED = [
  ['a hello world', 'delivered'],
  ['the same, not sampled', 'unsampled'],
  ['the same with `enabled: false`', 'disabled'],
  ['a hello world behind a proxy, from another client each time', 'proxied'],
  ['a hello world with a query', 'query'],
  ['a hello world on a connection of its own', 'fresh'],
  ['a thrown 500 (mostly the text of its stack)', 'throws'],
  ['a Redis call', 'redis'],
  ['`metrics`, for a sampled request', 'metrics'],
  ['`metrics`, for an unsampled request', 'metrics-unsampled'],
  ['`keep`, for an unsampled request', 'keep-errors'],
  ['`omitAttributes` with four keys', 'omitted'],
  ['`spanProcessors` beside an `exporter`', 'beside']
]

/** The cost of a request, and what each addition costs. */
function addedTable ({ instructions, growth, logLines }) {
  const { node, rows } = instructions.nodes[HEADLINE_NODE]
  const counted = ADDED.map(([label, name]) => ({ label, ...row({ rows }, name) })).filter(({ over }) => over !== undefined)
  const grown = [['a child span', 'spans'], ['an attribute', 'attributes']].map(([label, name]) => ({ label, ...growth.tables.find((table) => table.name === name) }))
  const exported = logLines.rows.find(({ label }) => label === 'light-trace, lines exported')
  return [
    table([['tracing', ({ label }) => label], ['instructions', ({ cost }) => cost, 'right']], [
      ...counted.map(({ label, over: [more] }) => ({ label, cost: thousands(more) })),
      ...grown.map(({ label, rows }) => ({ label, cost: thousands(eachOf(rows)) })),
      { label: 'a log line, exported', cost: `${exported.over.toFixed(1)} µs` }
    ]),
    '',
    `Each row is compared with the same request without it. Node ${node.slice(1)}, ${codeOf([...counted, ...grown])}.`
  ].join('\n')
}

/** The cost of one more. It is taken at the largest counts that are still fully recorded. */
function eachOf (rows) {
  const [before, at] = rows.filter(({ n }) => n <= 128).slice(-2)
  return (at.instructions - before.instructions) / (at.n - before.n)
}

const NODES = [24, 26, 22, 20]

/** The README's benchmark on each measured Node, in one table: hello world, pipelined and one at a time, and the real request. */
function nodesTable (seeds, shortly = false) {
  const tables = [['hello', 10], ['hello', 1], ['checkout', 10]].flatMap(([route, pipelining]) => NODES.map((major) => seedsOf(seeds, route, pipelining, major)).filter((found) => found !== undefined))
  const tracers = [['floor', /^(?:als-floor|floor-real)$/], ['light-trace', /^lighttrace-/], ['@fastify/otel', /^fastify-otel/], ['NodeSDK', /^(?:nodesdk-|stock-real)/]]
  const cell = shortly ? throughput : both
  return [
    table([
      ['', ({ route, profile: { pipelining } }) => `${route === 'hello' ? 'hello world' : 'a real request'}, ${pipelining === 1 ? 'one at a time' : `${pipelining} in flight`}`],
      ['Node', ({ node }) => shortly ? node.slice(1).split('.')[0] : node.slice(1)],
      ...tracers.slice(shortly ? 1 : 0).map(([title, name]) => [shortly ? title : `${title}: throughput, CPU`, ({ rows }) => cell(rows.find((found) => name.test(found.name))), 'right'])
    ], tables),
    '',
    shortly
      ? `Throughput as a share of Fastify's without a tracer. ${tables[0].machine}, ${tables[0].date.slice(0, 10)}, ${codeOf(tables, 'table by table')}.`
      : `Relative to bare Fastify on the same Node: medians of the ratios within a round. The floor is one AsyncLocalStorage; for the real request, it is what every tracer needs. ${provenance(tables[0], codeOf(tables, 'table by table'))}`
  ].join('\n')
}

function throughput (found) {
  return found === undefined ? '' : `${(100 * found.relativeRps[0]).toFixed(0)} %`
}

function both (found) {
  return found === undefined ? '' : `${found.relativeRps[0].toFixed(2)}, ${found.relativeCpu[0].toFixed(2)}`
}

/** The rows that no other table has. Baselines are left out, because each row shows its difference to its baseline. */
function instructionsTable ({ nodes, profile }) {
  const { node, rows } = nodes[HEADLINE_NODE]
  const elsewhere = new Set([...REAL_ROWS.map(([, name]) => name), ...others, ...STEPS.map(([name]) => name)])
  const shown = rows.filter(({ name, over }) => over !== undefined && (!elsewhere.has(name) || name === 'delivered'))
  return [
    table([
      ['', (row) => `${labelOf(row.name)}${howCounted(row, profile)}`],
      ['instructions per request', ({ total }) => withHalfWidth(total), 'right'],
      ['over its baseline', ({ over: [more] }) => `**${signedCount(more)}**`, 'right'],
      ['of which JavaScript / builtins / GC / native', ({ kinds = [] }) => kinds.map(signedCount).join(' / '), 'right']
    ], shown),
    '',
    `Each process counts ${profile.requests.toLocaleString('en')} requests after a warm-up of ${profile.warmUp.toLocaleString('en')}, unless a row says otherwise. ± is shown if there were several processes. Node ${node.slice(1)}, ${codeOf(shown)}.`
  ].join('\n')
}

// Notes how a row was counted if that differs from the line below the table.
function howCounted ({ requests, warmUp, isCollected }, profile) {
  const notes = [
    requests < profile.requests || requests > profile.requests ? `${thousands(requests)} counted` : null,
    warmUp < profile.warmUp ? `warm-up ${thousands(warmUp)}` : null,
    isCollected === false ? 'without garbage collection' : null
  ].filter((note) => note !== null)
  return notes.length === 0 ? '' : ` (${notes.join(', ')})`
}

// Each step adds something to the previous one.
const STEPS = [
  ['bare', 'Fastify'],
  ['hook', 'a hook that does nothing'],
  ['hook-record', 'a record on request and response'],
  ['hook-context', 'a context for the rest of the request: `enterWith`'],
  ['floor', 'a `close` listener on the response'],
  ['hook-clock', 'two clock readings'],
  ['not-sent', 'light-trace without its exporter: trace headers, ids, route, client, sampling, the span'],
  ['delivered', "encoding and sending the span, and Node's streams, which from then on serve a second class of sockets"]
]

/** From bare Fastify to a delivered span, for the rows that were counted. */
function stepsTable ({ nodes }, major) {
  const { rows, node } = nodes[major]
  const counted = STEPS.map(([name, what]) => ({ what, ...row({ rows }, name) })).filter(({ total }) => total !== undefined)
  return [
    table([
      ['step', ({ what }) => what],
      ['instructions', ({ total: [all] }) => thousands(all), 'right'],
      ['more than the row above', (step) => { const i = counted.indexOf(step); return i === 0 ? '' : signedCount(step.total[0] - counted[i - 1].total[0]) }, 'right']
    ], counted),
    '',
    `Node ${node.slice(1)}, ${codeOf(counted)}.`
  ].join('\n')
}

/** Results of bench/v8.js. */
function deoptimisationsTable ({ rows, profile, ...result }) {
  return [
    table([
      ['', ({ label }) => label],
      ['functions compiled', ({ compiled }) => String(compiled), 'right'],
      ['deoptimised', ({ deoptimised }) => String(deoptimised), 'right'],
      ["of these light-trace's", ({ ours }) => String(ours), 'right'],
      ['bytes allocated per request', ({ bytes }) => thousands(bytes), 'right'],
      ['over its baseline', ({ over }) => over ? signedCount(over.bytes) : '', 'right'],
      ['bytes alive at a garbage collection', ({ survivors }) => thousands(survivors), 'right']
    ], rows),
    '',
    `Deoptimised with light-trace and not without it: ${row({ rows }, 'delivered').over.functions.map(({ name, reason }) => `\`${name.trim()}\` (${reason})`).join(', ')}.`,
    '',
    `${profile.settle.toLocaleString('en')} requests in one process; the last column is for ${profile.connections} connections. ${provenance(result)}`
  ].join('\n')
}

/** Results of bench/next-tick.js. */
function nextTickTable ({ rows, rounds, machine, date }) {
  return [
    table([
      ['Node', ({ node }) => node],
      ['before', ({ before }) => `${before} ns`, 'right'],
      ['after a collection', ({ after }) => `**${after} ns**`, 'right'],
      ['before, with a record kept', ({ keptBefore }) => `${keptBefore} ns`, 'right'],
      ['after, with a record kept', ({ keptAfter }) => `${keptAfter} ns`, 'right']
    ], rows),
    '',
    `CPU time of one \`process.nextTick\`; medians of ${rounds} processes each. ${machine}, ${date.slice(0, 10)}.`
  ].join('\n')
}

function thousands (value) {
  return Math.round(value).toLocaleString('en')
}

function signedCount (value) {
  return `${value < 0 ? '−' : '+'}${thousands(Math.abs(value))}`
}

// The half width is unknown when there was only one process.
function withHalfWidth ([median, halfWidth]) {
  return halfWidth === undefined ? thousands(median) : `${thousands(median)} ± ${thousands(halfWidth)}`
}
