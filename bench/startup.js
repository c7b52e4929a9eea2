'use strict'

// npm run bench:startup: what requiring and registering costs, in time (a minute) and in instructions (five, by callgrind).
// Writes bench/results/startup.json and startup-instructions.json.
// `npm run bench -- --publish` measures the time too.
//
//   --instructions    only these: they are right on a busy machine too
//   --time            only that

const path = require('node:path')
const { parseArgs } = require('node:util')
const { HEADLINE_NODE, cases } = require('./cases')
const installMissing = require('./install')
const { nodeOfMajor } = require('./run/binaries')
const { describeMachine, describeCommit, watchSteal } = require('./run/machine')
const { pinBench } = require('./run/pinning')
const { measureStartup } = require('./run/startup')
const { countStartup } = require('./run/startup-instructions')
const { startupTable, startupInstructionsTable } = require('./report/tables')
const { writeResults } = require('./report/results-file')

const CASES = ['bare', 'request-context', 'lighttrace-100', 'sdk2-by-hand', 'fastify-otel', 'nodesdk-http', 'nodesdk-auto', 'dd-trace']
const COUNTED = ['bare', 'lighttrace-100', 'sdk2-by-hand', 'fastify-otel']
const ROOT = path.join(__dirname, '..')

module.exports = { writeStartup }

if (require.main === module) {
  main().catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
}

async function main () {
  const { values } = parseArgs({ options: { instructions: { type: 'boolean', default: false }, time: { type: 'boolean', default: false } } })
  installMissing(['rivals'])
  const machine = describeMachine() // before this process is pinned to one core
  if (!values.time) await writeInstructions(machine)
  if (!values.instructions) {
    pinBench()
    writeStartup(machine)
  }
}

async function writeInstructions (machine, major = HEADLINE_NODE) {
  const cached = COUNTED.slice(0, 2).map(caseNamed).map((testCase) => ({ ...testCase, name: `${testCase.name}-cached`, label: `${testCase.label}, NODE_COMPILE_CACHE set`, compileCache: true }))
  const rows = await countStartup([...COUNTED.map(caseNamed), ...cached], nodeOfMajor(major))
  const result = { date: new Date().toISOString(), ...describeCommit(ROOT), machine, major, rows }
  console.error(`wrote ${writeResults('startup-instructions', result)}`)
  console.log(startupInstructionsTable(result))
}

function writeStartup (machine, node = nodeOfMajor(HEADLINE_NODE)) {
  const steal = watchSteal()
  const { version, startup } = measureStartup(CASES.map(caseNamed), node)
  const result = { date: new Date().toISOString(), ...describeCommit(ROOT), machine, steal: steal(), node: version, startup }
  console.error(`wrote ${writeResults('startup', result)}`)
  console.log(startupTable(result))
}

function caseNamed (name) {
  return cases.find((testCase) => testCase.name === name)
}
