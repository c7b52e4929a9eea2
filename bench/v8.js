'use strict'

// npm run bench:v8: what V8 does with a case's code during warm-up, what a request allocates, and what survives a collection.
//
//   --case delivered   as in npm run bench:instructions; default: the floor and the cases that CI examines
//   --tree, --node     likewise
//   --list             lists the functions that V8 deoptimised, and why, where the baseline did not have the deoptimisation
//   --publish          writes bench/results/v8.json

const path = require('node:path')
const { parseArgs } = require('node:util')
const { chooseCases, examined, HEADLINE_NODE } = require('./instructions/cases')
const { traceCase, allocationOf, survivorsOf, CONNECTIONS } = require('./instructions/v8-trace')
const { nodeOfMajor } = require('./run/binaries')
const { startTool, stopAll } = require('./run/processes')
const { describeCommit, describeMachine } = require('./run/machine')
const { freePort } = require('../scripts/free-port')
const { writeResults } = require('./report/results-file')

const ROOT = path.join(__dirname, '..')
const PROFILE = { settle: 200_000, requests: 10_000, connections: CONNECTIONS }

module.exports = { examineCases }

if (require.main === module) {
  main().catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
}

async function main () {
  const { values } = parseArgs({
    options: {
      case: { type: 'string', multiple: true },
      tree: { type: 'string', default: ROOT },
      node: { type: 'string', default: String(HEADLINE_NODE) },
      list: { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false }
    }
  })
  const rows = await examineCases(chooseCases(values.case ?? ['floor', ...examined()]), { node: Number(values.node), root: path.resolve(values.tree), measures: [traceCase, allocationOf, survivorsOf] })
  console.table(rows.map(({ name, compiled, deoptimised, over, bytes, survivors }) => ({ case: name, compiled, deoptimised: deoptimised.length, ours: deoptimised.filter(({ ours }) => ours).length, 'over its baseline': over?.deoptimisations, 'bytes a request': Math.round(bytes), 'bytes over': over && Math.round(over.bytes), 'bytes alive': survivors })))
  if (values.list) for (const { name, over } of rows) if (over) { console.log(`${name}, over its baseline`); console.table(over.functions) }
  if (values.publish) console.error(`wrote ${writeResults('v8', { date: new Date().toISOString(), ...describeCommit(__dirname), machine: describeMachine(), profile: PROFILE, node: rows[0].runtime, rows })}`)
}

/**
 * @param {object[]} cases
 * @param {{ node: number, root: string, profile?: object, measures?: Function[] }} options measures: of instructions/v8-trace.js
 * @returns {Promise<object[]>} one row per case: { name, compiled, deoptimised: [{ name, ours, reason }], bytes, micros, survivors, over }; micros: CPU time
 *   per request in one process, for orientation
 */
async function examineCases (cases, { node, root, profile = PROFILE, measures = [traceCase, allocationOf] }) {
  const [load, sink] = await Promise.all([startTool('load', process.execPath), startTool('sink', process.execPath)])
  const options = { ...profile, load, sink, down: await freePort(), binary: nodeOfMajor(node), root }
  const rows = []
  try {
    for (const testCase of cases) {
      const { name, label, against } = testCase
      const row = { name, label, against }
      for (const measure of measures) Object.assign(row, await measure(testCase, options))
      rows.push(row)
    }
  } finally {
    await stopAll()
  }
  for (const row of rows) row.over = overBaseline(row, rows.find(({ name }) => name === row.against))
  return rows
}

function overBaseline (row, base) {
  if (base === undefined || base === row) return null
  const known = new Map()
  for (const { name } of base.deoptimised) known.set(name, (known.get(name) ?? 0) + 1)
  const functions = row.deoptimised.filter(({ name }) => {
    const left = known.get(name) ?? 0
    known.set(name, left - 1)
    return left <= 0
  })
  return { deoptimisations: row.deoptimised.length - base.deoptimised.length, functions, bytes: row.bytes - base.bytes }
}
