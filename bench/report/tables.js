'use strict'

// Which tables are published, from which rows.

const { table, figure, withSpread } = require('./markdown')
const { targets, row, judge } = require('../targets')

// A server that still had time is limited by the load, not by itself: its figure is a lower bound.
const LOAD_BOUND_BELOW = 0.9
const README_ROWS = ['bare', 'als-floor', 'lighttrace-100', 'lighttrace-unsampled', 'lighttrace-off', 'sdk2-by-hand', 'fastify-otel', 'dd-trace', 'nodesdk-http', 'nodesdk-auto']

// Rows below are left out of the profile's table.
const PROFILE_LEAST_MICROS = 0.02

module.exports = { readmeTable, pairedTable, profileTable, overheadTable, startupTable, targetsTable, sizesTable, provenance, requestsPerSecond, README_ROWS }

// CPU time by the paired slices where they have the row, else by the load rounds, which scatter more.
function readmeTable (result, paired) {
  const rows = README_ROWS.map((name) => row(result, name)).filter(Boolean)
  return [
    table([
      ['', (r) => bold(r, r.label)],
      ['CPU per request', (r) => bold(r, readmeMicros(r, row(paired, r.name), paired)), 'right'],
      ['requests per second', (r) => valid(r, () => requestsPerSecond(r)), 'right'],
      ['RSS', (r) => valid(r, () => r.against ? `+ ${figure(r.overRssMB, 0)} MB` : `${figure(r.rssMB, 0)} MB`), 'right'],
      ['spans delivered', (r) => valid(r, () => share(r.spans)), 'right']
    ], rows),
    '',
    `Hello world. CPU time over Fastify's own by paired slices, with its share of it. light-trace is compared with a Fastify whose \`process.nextTick\` it has kept fast, as it does for every app: that takes ${figure(row(paired, 'bare-kept-tick').micros, 1)} µs, and light-trace's ${figure(row(paired, 'lighttrace-100').micros, 1)} µs are ${signed(row(paired, 'lighttrace-100').over.median)} µs against Fastify as it comes. "About" and the other columns by load, medians of ${result.profile.rounds} interleaved rounds. ${provenance(result)} [All figures](docs/overhead.md).`
  ].join('\n')
}

// What light-trace does for the process as a whole is not set against what tracing costs.
function readmeMicros (loaded, sliced, paired) {
  if (!sliced) return valid(loaded, () => `about ${figure(loaded.overMicros, 0)} µs over`)
  if (sliced.name === 'bare') return `${figure(sliced.micros, 1)} µs`
  const isOurs = sliced.name.startsWith('lighttrace')
  const over = isOurs ? sliced.overKept : sliced.over
  return `${figure(over, 1)} µs over, ${(100 * over.median / row(paired, isOurs ? 'bare-kept-tick' : 'bare').micros.median).toFixed(0)} %`
}

function signed (micros) {
  return `${micros < 0 ? '−' : '+'}${Math.abs(micros).toFixed(1)}`
}

// Every row of one block or of several.
function overheadTable (result, names) {
  const rows = names.map((name) => row(result, name)).filter(Boolean)
  return table([
    ['case', (r) => r.label],
    ['Node', (r) => r.node.slice(1), 'right'],
    ['CPU µs/request', (r) => valid(r, () => withSpread(r.cpuMicrosPerRequest, 1)), 'right'],
    ['over its baseline', (r) => valid(r, () => withSpread(r.overMicros, 2)), 'right'],
    ['requests per second', requestsPerSecond, 'right'],
    ['relative', (r) => figure(r.relativeRps, 2), 'right'],
    ['p50 / p99 / p99.9 ms', (r) => `${figure(r.latencyP50Ms, 2)} / ${figure(r.latencyP99Ms, 2)} / ${figure(r.latencyP999Ms, 2)}`, 'right'],
    ['loop delay p99 ms', (r) => figure(r.eventLoopDelayP99Ms, 1), 'right'],
    ['RSS MB', (r) => figure(r.rssMB, 0), 'right'],
    ['spans created / received / dropped', (r) => r.spans.created === 0 ? '' : `${r.spans.created} / ${r.spans.received} / ${r.spans.dropped}`, 'right'],
    ['server, load busy', (r) => `${percent(r.serverBusy)}, ${percent(r.loadBusy)} %`, 'right']
  ], rows)
}

// Of bench/paired.js.
function pairedTable (result) {
  const { rows, profile, spans } = result
  return [
    table([
      ['', ({ label }) => label],
      ['Node', ({ node }) => node.slice(1), 'right'],
      ['CPU µs per request', ({ micros }) => withSpread(micros, 2), 'right'],
      ['over bare', ({ over }) => withSpread(over, 2), 'right'],
      ['over bare with a record kept', ({ overKept }) => withSpread(overKept, 2), 'right']
    ], rows),
    '',
    `Tenth percentiles of ${profile.slices} slices of ${profile.requests} requests in each of ${profile.processes} processes per case, ${profile.pipelining} pipelined on each of ${profile.connections} connections: median, least and greatest of the processes. ${spans.created} spans created, ${spans.delivered} delivered. ${provenance(result)}`
  ].join('\n')
}

// Of bench/profile.js: where the last case's time goes, against its baseline's.
function profileTable (result) {
  const [base, traced] = [result.rows[0].groups, result.rows.at(-1).groups]
  const rows = [...new Set([...Object.keys(base), ...Object.keys(traced)])]
    .map((name) => ({ name, base: base[name] ?? 0, traced: traced[name] ?? 0 }))
    .filter((row) => Math.max(row.base, row.traced) >= PROFILE_LEAST_MICROS)
    .sort((a, b) => (b.traced - b.base) - (a.traced - a.base))
  return [
    table([
      ['self time, µs per request', ({ name }) => name.replace(/^light-trace (.*)$/, '`$1`')],
      [result.rows[0].label, (row) => row.base.toFixed(2), 'right'],
      [result.rows.at(-1).label, (row) => row.traced.toFixed(2), 'right'],
      ['difference', (row) => (row.traced - row.base).toFixed(2), 'right']
    ], rows),
    '',
    `${result.profile.seconds} s of load on each, under V8's profiler, which slows both down. ${provenance(result)}`
  ].join('\n')
}

function targetsTable (results) {
  return table([
    ['', ({ target }) => target.label],
    ['to reach', ({ target }) => target.atMost === undefined ? `≥ ${target.atLeast} ${target.unit}` : `≤ ${Number(target.atMost.toFixed(2))} ${target.unit}`, 'right'],
    ['measured', ({ target, measured }) => measured ? `${withSpread(measured, 2)} ${target.unit}` : 'not measured', 'right'],
    ['where bare Fastify takes 10 µs', ({ target, scaled }) => scaled && target.scale ? `${withSpread(scaled, 2)} ${target.unit}` : '', 'right'],
    ['', ({ verdict }) => verdict],
    ['strictly, where that Fastify takes 10 µs', ({ target, strict }) => strict ? `${withSpread(strict, 2)} ${target.unit}` : '', 'right'],
    ['', ({ strictVerdict }) => strictVerdict]
  ], targets.map((target) => ({ target, ...judge(target, results) })))
}

function sizesTable (result) {
  const { installedBytes } = result
  const label = (name) => row(result, name)?.label ?? name
  return table([
    ['', ({ name }) => name === 'lighttrace' ? 'light-trace + fastify-plugin' : name === 'api' ? '@opentelemetry/api (the peer)' : label(name)],
    ['installed (MB)', ({ bytes }) => (bytes / 1e6).toFixed(2), 'right']
  ], Object.entries(installedBytes).map(([name, bytes]) => ({ name, bytes })))
}

// Of run/startup.js: its first case is Fastify alone.
function startupTable (result) {
  const rows = Object.values(result.startup)
  const over = (figureName, show = (spread) => withSpread(spread, 1)) => (r) => r === rows[0] ? '' : show(r.over[figureName])
  return [
    table([
      ['', ({ label }) => label],
      ['files', ({ files }) => files === 0 ? '' : `+ ${files}`, 'right'],
      ['require and register (ms)', ({ totalMs }) => withSpread(totalMs, 1), 'right'],
      ['over Fastify', over('totalMs'), 'right'],
      ['of that, require', over('requireMs'), 'right'],
      ['CPU over Fastify (ms)', over('cpuMs'), 'right'],
      ['share of Fastify\'s own', over('share', ({ median }) => `${(100 * median).toFixed(0)} %`), 'right']
    ], rows),
    '',
    `The fastest third of ${Math.max(...rows.map(({ starts }) => starts))} starts in turns, of the slow ones half as many. ${provenance(result)}`
  ].join('\n')
}

function provenance ({ machine, node, date, commit, dirty, steal }) {
  const stolen = steal > 0.005 ? `, ${(steal * 100).toFixed(1)} % of its time taken by other machines` : ''
  const busy = machine.loadBefore > 0.5 ? `, not idle before (load ${machine.loadBefore.toFixed(1)})` : ''
  return `Node ${node.slice(1)}, ${machine.cores}-core ${machine.cpu}, ${machine.pinning}${stolen}${busy}, ${date.slice(0, 10)}, commit ${commit?.slice(0, 7)}${dirty ? ' with changes' : ''}.`
}

// A round whose two sides disagree gives no figures.
function valid ({ faults }, cell) {
  return faults.length > 0 ? 'invalid' : cell()
}

function bold ({ name }, text) {
  return name === 'lighttrace-100' ? `**${text}**` : text
}

function share ({ created, received }) {
  return created === 0 ? '' : `${(received / created * 100).toFixed(received === created ? 0 : 1)} %`
}

function percent (spread) {
  return spread ? (spread.median * 100).toFixed(0) : ''
}

function requestsPerSecond ({ requestsPerSecond: { median }, serverBusy }) {
  return `${serverBusy.median < LOAD_BOUND_BELOW ? '≥ ' : ''}${Math.round(median).toLocaleString('en')}`
}
