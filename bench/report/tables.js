'use strict'

// Which tables are published, from which rows.

const { table, figure, withSpread } = require('./markdown')
const { targets, row, judge } = require('../targets')
const { codeOf } = require('../run/code')

// A server that still had time is limited by the load, not by itself: its figure is a lower bound.
const LOAD_BOUND_BELOW = 0.9

module.exports = { overheadTable, startupTable, startupInstructionsTable, targetsTable, sizesTable, provenance, requestsPerSecond }

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

function targetsTable (results) {
  return table([
    ['', ({ target }) => target.label],
    ['to reach', ({ target }) => bound(target), 'right'],
    ['measured', ({ target, measured }) => measured ? amount(target, measured) : 'not measured', 'right'],
    ['', ({ verdict }) => verdict === 'missed' ? '**missed**' : verdict],
    ['why', ({ target, verdict }) => verdict === 'missed' || verdict === 'within the interval' ? target.why : '']
  ], targets.map((target) => ({ target, ...judge(target, results) })))
}

function bound ({ atMost, atLeast, unit }) {
  if (atMost !== undefined) return `≤ ${Number(atMost.toFixed(2)).toLocaleString('en')} ${unit}`
  return atLeast === undefined ? 'published' : `≥ ${atLeast} ${unit}`
}

function amount ({ unit, digits = 1 }, { median, min, max }) {
  const shown = (value) => value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${shown(median)}${max > min ? ` (${shown(min)}…${shown(max)})` : ''} ${unit}`
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

// Of run/startup-instructions.js: its first case is Fastify alone.
function startupInstructionsTable ({ rows, major, date, ...code }) {
  const list = Object.values(rows)
  const over = (until) => (row) => row === list[0] ? '' : `${millions(row[until].over)} (${(100 * row[until].share).toFixed(1)} %)`
  return [
    table([
      ['', ({ label }) => label],
      ['until ready, millions', ({ ready }) => millions(ready.own), 'right'],
      ['over Fastify (in parts of its own)', over('ready'), 'right'],
      ['until the first answer', ({ answered }) => millions(answered.own), 'right'],
      ['over Fastify', over('answered'), 'right']
    ], list),
    '',
    `Instructions over those of a Node that does nothing: each the middle of two starts under callgrind. Node ${major}, ${date.slice(0, 10)}, ${codeOf([code])}.`
  ].join('\n')
}

function millions (instructions) {
  return (instructions / 1e6).toFixed(0)
}

function provenance ({ machine, node, date, dirty, steal, ...code }, counted = codeOf([code])) {
  const stolen = steal > 0.005 ? `, ${(steal * 100).toFixed(1)} % of its time taken by other machines` : ''
  const busy = machine.loadBefore > 0.5 ? `, not idle before (load ${machine.loadBefore.toFixed(1)})` : ''
  return `Node ${node.slice(1)}, ${machine.cores}-core ${machine.cpu}, ${machine.pinning}${stolen}${busy}, ${date.slice(0, 10)}, ${counted}${dirty ? ' with changes' : ''}.`
}

// A round whose two sides disagree gives no figures.
function valid ({ faults }, cell) {
  return faults.length > 0 ? 'invalid' : cell()
}

function percent (spread) {
  return spread ? (spread.median * 100).toFixed(0) : ''
}

function requestsPerSecond ({ requestsPerSecond: { median }, serverBusy }) {
  return `${serverBusy.median < LOAD_BOUND_BELOW ? '≥ ' : ''}${Math.round(median).toLocaleString('en')}`
}
