'use strict'

// npm run bench -- viewer: measures what the viewer promises. Writes bench/results/viewer.json and the table of bench/RESULTS.md; takes
// about two minutes. `-- --no-publish` only prints.
//
// The machine may be busy, so figures are CPU times of the viewer's process where possible, and otherwise medians of many runs.

const path = require('node:path')
const { measureOwnSizes } = require('../run/installed-size')
const { describeMachine, describeCommit, watchSteal } = require('../run/machine')
const { writeResults } = require('../report/results-file')
const { stored } = require('../report/stored')
const { viewerTable } = require('../report/viewer-table')
const { measureStart } = require('./start')
const { measureSeen } = require('./seen')
const { measureIngest } = require('./ingest')
const { measureMemory } = require('./memory')
const { measureLargeTrace } = require('./large-trace')
const { measurePage } = require('./page')

const ROOT = path.join(__dirname, '../..')

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const machine = describeMachine()
  const steal = watchSteal()
  const figures = {}
  for (const [name, measure] of Object.entries({ start: measureStart, seen: measureSeen, ingest: measureIngest, memory: measureMemory, largeTrace: measureLargeTrace, sizes: measureOwnSizes })) {
    console.error(`${name}…`)
    figures[name] = await measure()
    console.error(JSON.stringify(figures[name]))
  }
  const page = await measurePage().catch((error) => {
    console.error(`the page was not measured: ${error.message}`)
    return null
  })
  const result = { date: new Date().toISOString(), ...describeCommit(ROOT), machine, steal: steal(), node: process.version, ...figures }
  if (!process.argv.includes('--no-publish')) {
    console.error(`wrote ${writeResults('viewer', result)}`)
    if (page !== null) console.error(`wrote ${writeResults('viewer-page', page)}`)
    require('../report/publish').publish()
  }
  console.log(viewerTable(stored('viewer', result), page && stored('viewer-page', page)))
}
