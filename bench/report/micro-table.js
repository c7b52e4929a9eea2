'use strict'

// Makes the table of bench/micro: the garbage of each step of a request. Bytes are the same on every machine.

const { table } = require('./markdown')
const { provenance } = require('./tables')

module.exports = { microTable }

function microTable ({ rows, ...result }) {
  return `${table([
    ['step', ({ step }) => step],
    ['function', ({ name }) => name],
    ['bytes of garbage', ({ bytes }) => bytes.toFixed(0), 'right']
  ], rows.toSorted((a, b) => parseInt(a.step) - parseInt(b.step)))}\n\n${provenance(result)}`
}
