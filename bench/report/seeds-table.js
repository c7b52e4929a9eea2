'use strict'

// Makes the tables of bench/seeds.js.

const { table, withSpread } = require('./markdown')
const { provenance } = require('./tables')
const { routes } = require('../routes')

module.exports = { seedsTable, tableName }

/** The name of a table, made of its route, load and Node. */
function tableName ({ route, profile: { connections, pipelining }, node }) {
  return `${route} -c ${connections} -p ${pipelining} @${node.slice(1).split('.')[0]}`
}

const ratio = (figure) => figure === undefined ? '1' : withSpread(figure, 2)
const strong = ({ name }, text) => name.startsWith('lighttrace') ? `**${text}**` : text
const spansOf = ({ spans, requests }) => spans[0] === 0 ? '' : `${shownSpans(spans)}, ${(spans[0] / requests).toFixed(0)} a request`

function shownSpans ([created, received]) {
  return created === received ? `all of ${millions(created)}` : `${millions(received)} of ${millions(created)}`
}

const COLUMNS = [
  ['', (row) => strong(row, row.label)],
  ['requests a second', ({ requestsPerSecond }) => Math.round(requestsPerSecond).toLocaleString('en'), 'right'],
  ['throughput, relative to Fastify', ({ relativeRps }) => ratio(relativeRps), 'right'],
  ['CPU time per request, relative to Fastify', ({ relativeCpu }) => ratio(relativeCpu), 'right'],
  ['spans that arrived', spansOf, 'right']
]

/** The full table, for the console and bench/RESULTS.md. */
function seedsTable (result) {
  const { rows, node, profile: { connections, pipelining } } = result
  return [
    `${routeOf(result)}, ${pipelining} in flight on each of ${connections} connections, Node ${node.slice(1)}:`,
    '',
    table([
      ...COLUMNS,
      ['CPU µs per request', ({ cpuMicrosPerRequest }) => withSpread(cpuMicrosPerRequest, 1), 'right'],
      ['p99 ms', ({ latencyP99Ms }) => withSpread(latencyP99Ms, 1), 'right'],
      ['RSS MB', ({ rssMB }) => withSpread(rssMB, 0), 'right'],
      ['CPU used by server, load', ({ busy }) => `${busy.map((share) => (share * 100).toFixed(0)).join(', ')} %`, 'right']
    ], rows),
    ...rows.flatMap(({ label, faults = [] }) => faults.map((sentence) => `\nINVALID, ${label}: ${sentence}`)),
    '',
    `${loadOf(result)} ${versionsOf(result)} ${provenance(result)}`
  ].join('\n')
}

function routeOf ({ route }) {
  const [{ method, path }] = routes[route].requests
  return `${method} ${path}`
}

function loadOf ({ profile: { connections, pipelining, rounds, seconds, processes } }) {
  const fresh = processes > 1 ? ` with each of ${processes} processes` : ''
  return `autocannon with ${connections} connections, ${pipelining === 1 ? 'one request at a time' : `${pipelining} requests in flight`} on each. All servers stay up and take turns: ${rounds} rounds of ${seconds} s${fresh}. Ratios are taken within a round; median (least…greatest).`
}

/** Lists each package that was loaded once, with its version. */
function versionsOf ({ versions }) {
  const named = Object.entries(versions).filter(([name]) => name !== 'light-trace')
  return `${named.map(([name, version]) => `${name} ${version}`).join(', ')}.`
}

function millions (count) {
  return count >= 1e5 ? `${(count / 1e6).toFixed(1)} million` : count.toLocaleString('en')
}
