'use strict'

// bench/results/faults.json → the table of bench/RESULTS.md.

const { table } = require('./markdown')

module.exports = { faultsTable }

function faultsTable ({ rows, profile, node, machine, date, commit }) {
  const total = (key) => rows.reduce((sum, row) => sum + row[key], 0)
  return [
    table([
      ['the collector', (row) => row.isControl ? `*${row.name}*` : row.name],
      ['row', (row) => row.row],
      ['p99 over bare Fastify, ms', ({ over }) => withBounds(over), 'right'],
      ['in the calmest tenth', ({ calm }) => calm.toFixed(2), 'right'],
      ['p50', ({ overP50 }) => withBounds(overP50), 'right'],
      ['bare p99', ({ bareP99 }) => bareP99.toFixed(2), 'right'],
      ['spans delivered, dropped, waiting', ({ spans }) => spans === undefined ? '' : `${spans.delivered}, ${sumOf(spans.dropped)}, ${spans.queued + spans.inFlight}`, 'right']
    ], rows),
    '',
    `Medians over ${profile.pairs} slices of ${profile.sliceMs} ms at ${profile.perSecond} requests a second, each against the bare slices before and after it, and where the median lies with 95 % confidence. ${total('answers')} answers were held against bare Fastify's byte for byte, ${total('wrong')} differed. Node ${node.slice(1)}, ${machine.cores}-core ${machine.cpu}, load ${machine.loadBefore.toFixed(1)} before, ${date.slice(0, 10)}, commit ${commit.slice(0, 7)}.`
  ].join('\n')
}

function withBounds ({ median, low, high }) {
  return `${median.toFixed(2)} (${low.toFixed(2)}…${high.toFixed(2)})`
}

function sumOf (dropped) {
  return Object.values(dropped).reduce((sum, spans) => sum + spans, 0)
}
