'use strict'

// Makes the table of bench/RESULTS.md from bench/results/faults.json.

const { table, withSpread } = require('./markdown')
const { provenance } = require('./tables')

module.exports = { faultsTable }

function faultsTable ({ rows, profile, ...result }) {
  const total = (key) => rows.reduce((sum, row) => sum + row[key], 0)
  return [
    table([
      ['the collector', (row) => row.isControl ? `*${row.name}*` : row.name],
      ['row', ({ row = '' }) => row],
      ['p99 over bare Fastify, ms', ({ over }) => withSpread(over, 2), 'right'],
      ['in the calmest tenth', ({ calm }) => calm.toFixed(2), 'right'],
      ['p50', ({ overP50 }) => withSpread(overP50, 2), 'right'],
      ['bare p99', ({ bareP99 }) => bareP99.toFixed(2), 'right'],
      ['spans delivered, dropped, waiting', ({ spans = [] }) => spans.join(', '), 'right']
    ], rows),
    '',
    `Medians over ${profile.pairs} slices of ${profile.sliceMs} ms at ${profile.perSecond} requests a second, each compared with the bare slices before and after it; in brackets, the 95 % confidence interval of the median. ${total('answers')} responses were compared with bare Fastify's byte by byte, and ${total('wrong')} differed. ${provenance(result)}`
  ].join('\n')
}
