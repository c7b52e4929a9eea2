'use strict'

// npm run bench, or npm run bench -- seeds: the project's original benchmark, and the first one that most people will run. autocannon
// keeps ten requests in flight on each of a hundred connections, against Fastify alone, with one AsyncLocalStorage, with light-trace,
// with @fastify/otel, and with NodeSDK and its auto-instrumentations.
//
// All servers stay up from the first round to the last and take turns, so other activity on the machine affects all of them. Each is
// warmed up first. Throughput and CPU time are ratios to bare Fastify in the same round: median, minimum and maximum. A round's CPU
// time includes sending its spans. Spans are counted where they arrive and compared with the number created.
//
//   --node 24           can be repeated
//   --pipelining 1      one request at a time on each connection
//   --route checkout    the real request with its floor, see bench/RESULTS.md; needs Redis
//   --case a,b          only these cases of bench/cases.js, and bare
//   --connections 100 --rounds 9 --seconds 3 --warmup 3
//   --processes 1       processes per case, run one after the other with all rounds each: two processes of one program never run alike
//   --against there     also light-trace of that commit or folder, in the same turns
//   --publish           writes the table of this load and Node to bench/results/seeds.json

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
  if (values.publish && (values.case ?? values.against) !== undefined) throw new Error('--publish needs the whole table, without --case and --against')
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

// Merges the rounds of all of a case's processes.
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
