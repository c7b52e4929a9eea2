'use strict'

// Of bench/micro: what the steps of a request's way cost, one by one.

const { table } = require('./markdown')
const { provenance } = require('./tables')

module.exports = { microTable }

function microTable (result) {
  const rows = result.rows.filter(({ step }) => step !== null).sort((a, b) => parseInt(a.step) - parseInt(b.step))
  return table([
    ['step', ({ step }) => step],
    ['function', ({ name }) => name],
    ['ns, the fastest sample', ({ nanos }) => nanos.min.toFixed(0), 'right'],
    ['ns, median', ({ nanos }) => nanos.median.toFixed(0), 'right'],
    ['bytes of garbage', ({ bytes }) => bytes.toFixed(0), 'right']
  ], rows) + `\n\n${provenance(result)}`
}
