'use strict'

// Makes the table of bench/log-lines.js.

const { table, withSpread } = require('./markdown')
const { provenance } = require('./tables')

module.exports = { logLinesTable }

function logLinesTable (result) {
  const { rows, rounds, lines } = result
  return [
    table([
      ['a line printed by', ({ label }) => label],
      ['CPU \u00b5s', ({ micros }) => withSpread(micros, 1), 'right'],
      ['more than pino', ({ over }) => over === 0 ? '' : `**+${over.toFixed(1)}**`, 'right']
    ], rows),
    '',
    `CPU time of all threads per line, for ${lines.toLocaleString('en')} lines of requests, until a collector in another process has their records: median (least…greatest) of ${rounds} processes. ${provenance(result)}`
  ].join('\n')
}
