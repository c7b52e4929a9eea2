'use strict'

// Of bench/micro: what the steps of a request's way cost, one by one. Bytes are the same on every machine; times are
// shown only where nothing else ran.

const { table } = require('./markdown')
const { provenance } = require('./tables')

const IDLE_LOAD = 0.5

module.exports = { microTable }

function microTable (result) {
  const isIdle = result.machine.loadBefore <= IDLE_LOAD
  const rows = result.rows.filter(({ step }) => step !== null).sort((a, b) => parseInt(a.step) - parseInt(b.step))
  const times = isIdle ? [['ns, median', ({ nanos }) => nanos.median.toFixed(0), 'right']] : []
  return table([
    ['step', ({ step }) => step],
    ['function', ({ name }) => name],
    ...times,
    ['bytes of garbage', ({ bytes }) => bytes.toFixed(0), 'right']
  ], rows) + `\n\n${provenance(result)}${isIdle ? '' : ' Times are left out, because the machine was busy.'}`
}
