'use strict'

// npm run bench:startup counts the instructions of requiring and registering, with callgrind, so the result is correct on a busy
// machine too. Writes bench/results/startup-instructions.json.

const path = require('node:path')
const { HEADLINE_NODE, cases } = require('./cases')
const installMissing = require('./install')
const { nodeOfMajor } = require('./run/binaries')
const { describeCommit } = require('./run/machine')
const { countStartup } = require('./run/startup-instructions')
const { startupTable } = require('./report/tables')
const { writeResults } = require('./report/results-file')

const COUNTED = ['bare', 'lighttrace-100', 'sdk2-by-hand', 'fastify-otel']

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  installMissing(['rivals'])
  const counted = COUNTED.map((name) => cases.find((testCase) => testCase.name === name))
  const cached = counted.slice(0, 2).map((testCase) => ({ ...testCase, name: `${testCase.name}-cached`, label: `${testCase.label}, NODE_COMPILE_CACHE set`, compileCache: true }))
  const rows = await countStartup([...counted, ...cached], nodeOfMajor(HEADLINE_NODE))
  const result = { date: new Date().toISOString(), ...describeCommit(path.join(__dirname, '..')), major: HEADLINE_NODE, rows }
  console.error(`wrote ${writeResults('startup-instructions', result)}`)
  console.log(startupTable(result))
}
