'use strict'

// The tables of the field: one line per server, the routes side by side; and what 200 awaits cost
// where a context follows them, by Node.

const { table, figure, withSpread } = require('./markdown')
const { provenance, requestsPerSecond } = require('./tables')
const { row } = require('../targets')
const { SERVERS, ROUTES, AWAIT_NODES } = require('../field/cases')

module.exports = { fieldTables }

function fieldTables (result) {
  return [
    `Medians of ${result.profile.rounds} rounds of ${result.profile.seconds} s${settledFirst(result.profile)}. ` + provenance({ ...result, node: row(result, 'fastify-hello').node }),
    'Requests per second (CPU µs per request, all processes):',
    serversTable(result),
    'A route that awaits 200 times, CPU µs per request over Fastify bare on the same Node:',
    awaitsTable(result)
  ].join('\n\n')
}

function settledFirst ({ settle, warmup }) {
  return settle > warmup ? `; each server was loaded before until V8's code had kept its size, ${settle} s at most (Bun and Deno ${settle} s)` : ''
}

function serversTable (result) {
  return table([
    ['', ({ label }) => label],
    ...Object.entries(ROUTES).map(([route, title]) => [title, ({ name }) => cell(row(result, `${name}-${route}`)), 'right']),
    ['spans per request', ({ name }) => spansPerRequest(row(result, `${name}-hello`)), 'right'],
    ['delivered', ({ name }) => delivered(row(result, `${name}-hello`)), 'right']
  ], SERVERS)
}

function cell (r) {
  if (!r) return ''
  if (r.faults.length > 0) return 'invalid'
  return `${requestsPerSecond(r)} (${figure(r.cpuMicrosPerRequest, 1)})`
}

function spansPerRequest (r) {
  return r && r.spans.created > 0 ? String(Math.round(r.spans.created / r.requests * 10) / 10) : ''
}

function delivered (r) {
  return r && r.spans.created > 0 ? `${(r.spans.received / r.spans.created * 100).toFixed(1)} %` : ''
}

function awaitsTable (result) {
  return table([
    ['Node', (node) => row(result, `bare-awaits@${node}`)?.node.slice(1) ?? String(node)],
    ['Fastify', (node) => figure(row(result, `bare-awaits@${node}`)?.cpuMicrosPerRequest, 1), 'right'],
    ['+ one AsyncLocalStorage', (node) => withSpread(row(result, `als-awaits@${node}`)?.overMicros, 1), 'right'],
    ['+ light-trace', (node) => withSpread(row(result, `lighttrace-awaits@${node}`)?.overMicros, 1), 'right']
  ], AWAIT_NODES)
}
