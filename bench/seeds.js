'use strict'

// npm run bench, or npm run bench -- seeds: the benchmark that this project began with, and that anyone will run first. autocannon with a hundred
// connections and ten requests in flight on each, against Fastify alone, with one AsyncLocalStorage, with light-trace, with
// @fastify/otel, and with NodeSDK and its auto-instrumentations.
//
// All servers are alive from the first round to the last and take turns, so whatever else the machine does hits all of them. Each is
// warmed up first. Throughput and CPU time are ratios to bare Fastify in the same round: the median, the least and the greatest. A
// round's CPU time has the sending of its spans in it. Spans are counted where they arrive and compared with those made.
//
//   --node 24           may be given more than once
//   --pipelining 1      one request at a time on each connection
//   --route checkout    a real request with its floor, see bench/RESULTS.md; it needs Redis
//   --case a,b          only these of bench/cases.js, and bare
//   --connections 100 --rounds 9 --seconds 3 --warmup 3
//   --processes 1       of each case, one after the other, each with all rounds: no two processes of one program run alike
//   --against there     light-trace of that commit or folder too, in the same turns
//   --publish           writes the table of this load and Node into bench/results/seeds.json

const { cases, seeds, HEADLINE_NODE } = require('./cases')
const chooseCases = require('./choose')
const installMissing = require('./install')
const { withServices } = require('./instructions/services')
const folderOf = require('./run/checkout')
const { readOptions } = require('./run/frame')
const { describeCommit, describeMachine, watchSteal } = require('./run/machine')
const startProgress = require('./run/progress')
const { run, stepsOf } = require('./run/run')
const summarise = require('./report/summary')
const { readResults, writeResults } = require('./report/results-file')
const { seedsTable, tableName } = require('./report/seeds-table')
const { stored } = require('./report/stored')

// The order of the tables in bench/RESULTS.md.
const ROUTES = Object.keys(seeds)
const NODES = [24, 26, 22, 20]

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const text = { type: 'string' }
  const { profile, values } = readOptions(
    { connections: 100, pipelining: 10, rounds: 9, seconds: 3, warmup: 3, processes: 1 },
    { node: { type: 'string', multiple: true, default: [String(HEADLINE_NODE)] }, route: { type: 'string', default: 'hello' }, case: text, against: text }
  )
  if (!ROUTES.includes(values.route)) throw new Error(`--route takes ${ROUTES.join(' or ')}, not "${values.route}"`)
  if (values.publish && (values.case ?? values.against) !== undefined) throw new Error('--publish takes the whole table, without --case and --against')
  const there = values.against && folderOf(values.against)
  const machine = describeMachine() // before this process is pinned to a core
  for (const node of values.node.map(Number)) {
    const names = values.case?.split(',') ?? seeds[values.route](node)
    const chosen = chooseCases(cases.map((testCase) => ({ ...testCase, node })), names).flatMap((testCase) => pairOf(testCase, there))
    const result = { machine, ...await measure(chosen, profile), route: values.route }
    const { tables: [table] } = stored('seeds', { tables: [result] })
    console.log(`\n${seedsTable(table)}\n`)
    if (result.rows.some(({ faults }) => faults.length > 0)) process.exitCode = 1
    else if (values.publish) publish(result)
  }
}

function pairOf (testCase, folder) {
  if (folder === undefined || !testCase.setup.endsWith('/light-trace')) return [testCase]
  return [testCase, { ...testCase, name: `${testCase.name} there`, label: `${testCase.label}, there`, env: { ...testCase.env, LIGHT_TRACE_ROOT: folder } }]
}

async function measure (chosen, profile) {
  installMissing(new Set(chosen.flatMap(({ needs = [] }) => needs)))
  const steal = watchSteal()
  const measured = await withServices(chosen, (served) => runAll(served, profile))
  return { date: new Date().toISOString(), ...describeCommit(__dirname), node: measured[0].node, profile, steal: steal(), rows: summarise(measured) }
}

// The rounds of all processes of a case are its rounds.
async function runAll (chosen, { processes, ...profile }) {
  const progress = startProgress(processes * stepsOf(chosen, profile))
  let all
  for (let i = 0; i < processes; i++) {
    const measured = await run(chosen, { profile, headlineNode: HEADLINE_NODE, progress })
    all = all?.map((entry, k) => ({ ...entry, rounds: [...entry.rounds, ...measured[k].rounds] })) ?? measured
  }
  return all
}

// One results file holds all loads and Nodes.
function publish (result) {
  const name = tableName(result)
  const { tables = [] } = readResults('seeds') ?? {}
  const kept = tables.filter((table) => table.name !== name)
  console.error(`wrote ${name} into ${writeResults('seeds', { tables: [...kept, { name, ...result }].sort((a, b) => placeOf(a) - placeOf(b)) })}`)
}

function placeOf ({ route, node, profile: { pipelining } }) {
  return (ROUTES.indexOf(route) * 1000 - pipelining) * NODES.length + NODES.indexOf(Number(node.slice(1).split('.')[0]))
}
