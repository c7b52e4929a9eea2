'use strict'

// Shared by the benches on pinned cores: options, pinning, the state of the machine, the results file, and stopping every process that
// was started.

const { parseArgs } = require('node:util')
const { describeCommit, describeMachine, watchSteal } = require('./machine')
const { pinBench } = require('./pinning')
const { stopAll } = require('./processes')
const { writeResults } = require('../report/results-file')

module.exports = { runBench, readOptions }

/**
 * Reads the command line, measures, prints, publishes with --publish, and stops every process of `processes.js`. On failure it prints
 * the error and sets the exit code to 1.
 * @param {{ numbers: Record<string, number>, others?: object, file: string | ((profile: object, values: object) => string), print: (result: object) => void }} bench
 *   numbers, others: see readOptions; file: the name under bench/results
 * @param {(profile: Record<string, number>, values: object) => Promise<object>} measure
 */
async function runBench ({ numbers, others, file, print }, measure) {
  const { profile, values } = readOptions(numbers, others)
  const machine = describeMachine() // before this process is pinned to a core
  pinBench()
  const steal = watchSteal()
  try {
    const result = await measure(profile, values)
    print(result)
    if (!values.publish) return
    const name = typeof file === 'string' ? file : file(profile, values)
    console.error(`wrote ${writeResults(name, { date: new Date().toISOString(), ...describeCommit(__dirname), machine, profile, stolen: steal(), ...result })}`)
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  } finally {
    await stopAll()
  }
}

/**
 * The options of a bench's command line. The numeric ones form its profile, which its results file records.
 * @param {Record<string, number>} numbers with their defaults
 * @param {object} others as for `parseArgs` of node:util; --publish is always included
 * @returns {{ profile: Record<string, number>, values: object }}
 */
function readOptions (numbers, others = {}) {
  const names = Object.keys(numbers)
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string', default: String(numbers[name]) }]))
  const { values } = parseArgs({ options: { publish: { type: 'boolean', default: false }, ...options, ...others } })
  return { profile: Object.fromEntries(names.map((name) => [name, Number(values[name])])), values }
}
