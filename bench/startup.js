'use strict'

// npm run bench:startup: what requiring and registering costs. Writes bench/results/startup.json and the
// section of docs/overhead.md that shows it; takes about a minute. `npm run bench -- --publish` does it too.

const path = require('node:path')
const { HEADLINE_NODE, cases } = require('./cases')
const installMissing = require('./install')
const { nodeOfMajor } = require('./run/binaries')
const { describeMachine, describeCommit, watchSteal } = require('./run/machine')
const { pinBench } = require('./run/pinning')
const { measureStartup } = require('./run/startup')
const { startupTable } = require('./report/tables')
const { writeResults } = require('./report/results-file')
const publish = require('./report/publish')

const CASES = ['bare', 'request-context', 'lighttrace-100', 'sdk2-by-hand', 'fastify-otel', 'nodesdk-http', 'nodesdk-auto', 'dd-trace']

module.exports = { writeStartup }

if (require.main === module) {
  installMissing(['rivals'])
  const machine = describeMachine() // before this process is pinned to one core
  pinBench()
  writeStartup(machine)
  publish().catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
}

function writeStartup (machine, node = nodeOfMajor(HEADLINE_NODE)) {
  const steal = watchSteal()
  const { version, startup } = measureStartup(CASES.map((name) => cases.find((testCase) => testCase.name === name)), node)
  const result = { date: new Date().toISOString(), ...describeCommit(path.join(__dirname, '..')), machine, steal: steal(), node: version, startup }
  console.error(`wrote ${writeResults('startup', result)}`)
  console.log(startupTable(result))
}
