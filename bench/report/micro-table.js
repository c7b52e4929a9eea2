'use strict'

// Of bench/micro: what the steps of a request's way leave behind, one by one. Bytes are the same on every machine.

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
