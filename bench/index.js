'use strict'

// npm run bench: what it takes is in options.js, what it measures in cases.js and field/cases.js.
// npm run bench -- <name> [options]: one of OTHERS, each a question of its own; its file says what it takes.

const fs = require('node:fs')
const path = require('node:path')
const { cases, HEADLINE_NODE } = require('./cases')
const chooseCases = require('./choose')
const installMissing = require('./install')
const { parseOptions, usage } = require('./options')
const { describeMachine, describeCommit, watchSteal } = require('./run/machine')
const startProgress = require('./run/progress')
const { run, stepsOf } = require('./run/run')
const measureInstalledSizes = require('./run/installed-size')
const summarise = require('./report/summary')
const consoleTable = require('./report/console-table')
const { provenance } = require('./report/tables')
const { writeResults } = require('./report/results-file')

const OTHERS = {
  seeds: './seeds',
  tail: './tail',
  calls: './calls',
  faults: './faults',
  micro: './micro',
  'next-tick': './next-tick',
  viewer: './viewer'
}

const name = process.argv[2]
if (Object.hasOwn(OTHERS, name ?? '')) {
  process.argv.splice(2, 1)
  require(OTHERS[name])
} else {
  main().catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
}

async function main () {
  const options = parseOptions(process.argv.slice(2))
  if (options.help) return console.log(usage)
  const table = options.field ? require('./field/cases').cases : cases
  if (options.list) return console.log(table.map(({ name, label }) => `${name.padEnd(28)} ${label}`).join('\n'))

  const result = await measure(chooseCases(table, options), options)
  console.log(`\n${consoleTable(result.rows)}\n\n${provenance(result)}`)
  if (options.json) fs.writeFileSync(options.json, JSON.stringify(result, null, 1) + '\n')
  if (options.publish) publishResult(options, result)
  if (result.rows.some(({ faults }) => faults.length > 0)) process.exitCode = 1
}

async function measure (chosen, options) {
  const { profile } = options
  const machine = describeMachine()
  installMissing(new Set(chosen.flatMap(({ needs = [] }) => needs)))
  console.error(`${chosen.length} cases, ${profile.rounds} rounds of ${profile.seconds} s, ${machine.pinning}`)
  const steal = watchSteal()
  const measured = await run(chosen, { ...options, headlineNode: HEADLINE_NODE, progress: startProgress(stepsOf(chosen, profile)) })
  const result = {
    date: new Date().toISOString(),
    ...describeCommit(path.join(__dirname, '..')),
    machine,
    steal: steal(),
    node: measured[0].node,
    profile,
    rows: summarise(measured)
  }
  return options.publish && !options.field ? { ...result, installedBytes: measureInstalledSizes() } : result
}

function publishResult ({ field, node }, result) {
  if (!field) require('./startup').writeStartup(result.machine, node)
  console.error(`wrote ${writeResults(field ? 'field' : 'overhead', result)}`)
}
