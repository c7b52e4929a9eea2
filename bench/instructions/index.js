'use strict'

// npm run bench:instructions counts the instructions per request, with callgrind and a deterministic V8. Results repeat to about half a
// percent even on a busy machine, so they can compare two commits. They do not reflect caches, the kernel, or how soon V8 finishes
// compiling. For those, use npm run bench.
//
//   --case delivered          only this case and its baseline; can be repeated; default: all
//   --quick                   one process per case: comparing two cases takes less than three minutes
//   --tree /path/to/checkout  also runs each light-trace case with that checkout: before and after in one command
//   --node 22                 a Node other than the headline's; can be repeated. 22-frames adds --experimental-async-context-frame
//   --processes 3             processes per case on the headline's Node; other Nodes get one
//   --warm-up 1000            the number of warm-up requests: a small one shows quickly whether a case works, but its count is not valid
//   --requests 40000          requests per window; they share the cost of what is sent at its end, mainly the metrics
//   --windows 1               windows per process
//   --parallel 2              processes at a time; affects only the duration
//   --functions               shows the difference to the baseline for each function
//   --publish                 writes bench/results/instructions.json, the source of the tables of `npm run docs:figures`
//   --counted                 with --case: does not count baselines again that are in that file already
//
// With --case, --publish and --counted use the very Node that the file's other rows were counted with.

const path = require('node:path')
const { parseArgs } = require('node:util')
const { table, chooseCases, HEADLINE_NODE } = require('./cases')
const { countProcess } = require('./count')
const { withServices } = require('./services')
const installValgrind = require('./valgrind')
const installMissing = require('../install')
const { nodeNamed } = require('../run/binaries')
const { startTool, stopAll } = require('../run/processes')
const { describeCommit, describeMachine } = require('../run/machine')
const { mean95 } = require('../run/statistics')
const { freePort } = require('../../scripts/free-port')
const { readResults, writeResults } = require('../report/results-file')
const { consoleRows, functionRows } = require('../report/instructions-table')
const { KINDS } = require('./callgrind')

const ROOT = path.join(__dirname, '../..')
// Runs more processes until the interval is half of the smallest difference that matters, or up to processesMax.
const FULL = { warmUp: 120_000, requests: 10_000, windows: 2, processesMin: 3, processesMax: 8, halfWidthMax: 100 }
const QUICK = { ...FULL, processesMin: 1, processesMax: 1 }

module.exports = { countCases, overInTurns, QUICK }

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
      quick: { type: 'boolean', default: false },
      tree: { type: 'string' },
      node: { type: 'string', multiple: true, default: [String(HEADLINE_NODE)] },
      processes: { type: 'string' },
      'warm-up': { type: 'string' },
      requests: { type: 'string' },
      windows: { type: 'string' },
      parallel: { type: 'string', default: '1' },
      functions: { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false },
      counted: { type: 'boolean', default: false }
    }
  })
  for (const node of values.node) await countOn(node, values)
}

async function countOn (node, values) {
  const known = values.counted ? publishedRows(node).map(asCounted) : []
  const cases = chooseCases(values.case)
    .filter(({ name }) => values.case?.includes(name) || !known.some((row) => row.name === name))
    .flatMap((testCase) => withTree(testCase, values.tree))
  const result = await countCases(cases, {
    node,
    version: values.case !== undefined && (values.publish || values.counted) ? publishedVersion(node) : node,
    profile: profileOf(node, values),
    functions: values.functions,
    known,
    parallel: Number(values.parallel),
    onCase (row, sofar) {
      console.error(`${row.name}: ${Math.round(row.total.median)} (${row.processes} × ${Math.round(row.seconds / row.processes)} s)`)
      if (values.publish) publish(sofar()) // saves partial results, because a full count takes long
    },
    onFailure ({ name }, error) { // the other cases are still valid
      console.error(`${name} could not be counted: ${error.message}`)
      process.exitCode = 1
    }
  })
  console.table(consoleRows(result.rows))
  if (values.functions) for (const { name, rows } of functionRows(result.rows)) { console.log(name); console.table(rows) }
}

function profileOf (node, { quick, processes, 'warm-up': warmUp, requests, windows }) {
  const profile = { ...quick ? QUICK : FULL, ...warmUp && { warmUp: Number(warmUp) }, ...requests && { requests: Number(requests) }, ...windows && { windows: Number(windows) } }
  if (processes === undefined) return profile
  const count = node === String(HEADLINE_NODE) ? Number(processes) : 1
  return { ...profile, processesMin: count, processesMax: count }
}

// The other checkout's row comes first and is the one to compare with.
function withTree (testCase, tree) {
  if (tree === undefined || !testCase.setup.endsWith('/light-trace')) return [testCase]
  const there = { ...testCase, name: `${testCase.name} there`, root: path.resolve(tree) }
  return [there, { ...testCase, before: there.name }]
}

/**
 * @param {object[]} cases
 * @param {{ node: number | string, version?: number | string, profile: object, functions?: boolean, isTraced?: (testCase: object) => boolean, known?: object[], parallel?: number, onCase?: (row: object, sofar: () => object) => void,
 *   onFailure?: (testCase: object, error: Error) => void }} options version: the Node to run, of bench/run/binaries.js; default: `node`.
 *   onFailure: by default it ends the count
 * @returns {Promise<{ date: string, commit: string, machine: object, name: string, node: string, profile: object, rows: object[] }>}
 */
async function countCases (cases, options) {
  await installValgrind()
  installMissing(new Set(cases.flatMap(({ needs = [] }) => needs)))
  return withServices(cases, (served) => countServed(served, options))
}

async function countServed (cases, { node, version = node, profile, functions = false, isTraced = () => false, known = [], parallel = 1, onCase = () => {}, onFailure = (testCase, error) => { throw error } }) {
  const [load, sink] = await Promise.all([startTool('load', process.execPath), startTool('sink', process.execPath)])
  const { binary, flags } = nodeNamed(version)
  const options = { ...profile, load, sink, down: await freePort(), binary, flags, functions }
  const rows = []
  const provenance = { date: new Date().toISOString(), ...describeCommit(__dirname), machine: describeMachine(), profile }
  const sofar = () => {
    const counted = rows.filter((row) => row !== undefined)
    return { ...provenance, name: String(node), node: [counted[0].runtime, ...flags].join(' with '), rows: withDifferences(counted, known) }
  }
  const left = [...cases.entries()]
  const countNext = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [i, testCase] = next
      try {
        rows[i] = await countCase(testCase, { ...options, isTraced: isTraced(testCase) })
      } catch (error) {
        onFailure(testCase, error)
        continue
      }
      onCase(rows[i], sofar)
    }
  }
  try {
    await Promise.all(Array.from({ length: parallel }, countNext))
  } finally {
    await stopAll()
  }
  return sofar()
}

async function countCase (testCase, options) {
  const processes = []
  const started = performance.now()
  let total
  do {
    processes.push(await countProcess(testCase, { ...options, root: testCase.root ?? ROOT }))
    total = testCase.turns === undefined
      ? mean95(processes.map(({ windows }) => ofWindows(windows, 'total')))
      : { ...mean95(processes.map(({ windows }) => ofWindows(windows.filter(({ state }) => state === testCase.turns[1]), 'total'))), halfWidth: overInTurns(processes, testCase).halfWidth }
  } while (processes.length < options.processesMin || (total.halfWidth > options.halfWidthMax && processes.length < options.processesMax))
  const { name, label, against, before, guard, isCollected } = testCase
  const warmUp = Math.min(options.warmUp, testCase.warmUp)
  const { commit, ...code } = describeCommit(ROOT)
  const hot = testCase.setup.endsWith('/light-trace') ? code.hot : null // the other setups run none of our code
  const kinds = Object.fromEntries([...KINDS, 'compiler'].map((kind) => [kind, mean95(processes.map(({ windows }) => ofWindows(windows, kind))).median]))
  const row = { name, label, against, before, guard, commit, hot, runtime: processes[0].runtime, processes: processes.length, requests: Math.max(options.requests, testCase.requests), warmUp, isCollected, total, ...kinds, spans: sumSpans(processes), deoptimisations: processes[0].deoptimisations }
  if (testCase.turns !== undefined) row.inTurns = overInTurns(processes, testCase)
  row.seconds = Math.round((performance.now() - started) / 1000)
  const { functions, functionsBefore } = processes.at(-1)
  return Object.defineProperties(row, { functions: { value: functions }, functionsBefore: { value: functionsBefore } }) // non-enumerable: too large for a results file
}

function ofWindows (windows, kind) {
  return mean95(windows.map((window) => window[kind])).median
}

/**
 * The difference between neighbouring windows, over all processes.
 * @param {{ windows: object[] }[]} processes of countProcess
 * @returns {{ median: number, halfWidth: number, javascript: number, builtins: number, gc: number, native: number }}
 */
function overInTurns (processes, { turns: [without] }) {
  const of = (kind) => mean95(processes.flatMap(({ windows }) => Array.from({ length: windows.length / 2 }, (_, i) => {
    const [first, second] = windows.slice(i * 2)
    return first.state === without ? second[kind] - first[kind] : first[kind] - second[kind]
  })))
  return { ...of('total'), ...Object.fromEntries(KINDS.map((kind) => [kind, of(kind).median])) }
}

function sumSpans (processes) {
  const counted = processes.map(({ spans }) => spans).filter((spans) => spans !== null)
  if (counted.length === 0) return null
  const sum = (key) => counted.reduce((total, spans) => total + spans[key], 0)
  return { requests: sum('requests'), created: sum('created'), delivered: sum('delivered') }
}

function withDifferences (rows, known) {
  const named = (name) => [...rows, ...known].find((row) => row.name === name)
  for (const row of rows) {
    row.over = row.inTurns ?? difference(row, named(row.against))
    if (row.before !== undefined) row.change = row.inTurns ? { median: row.inTurns.median - named(row.before).inTurns.median } : difference(row, named(row.before))
  }
  return rows
}

function difference (row, base) {
  if (base === undefined || base === row) return null
  return {
    median: row.total.median - base.total.median,
    halfWidth: Math.hypot(row.total.halfWidth, base.total.halfWidth),
    ...Object.fromEntries(KINDS.map((kind) => [kind, row[kind] - base[kind]]))
  }
}

// In the order of the case table, whenever they were counted.
function inOrder (rows) {
  const place = new Map(table.map(({ name }, i) => [name, i]))
  return rows.sort((a, b) => place.get(a.name) - place.get(b.name))
}

function publishedRows (name) {
  return readResults('instructions')?.nodes[name]?.rows ?? []
}

// '22-frames' → '22.23.3-frames'
function publishedVersion (name) {
  const { node } = readResults('instructions')?.nodes[name] ?? {}
  return node === undefined ? name : name.replace(/^\d+/, node.match(/[\d.]+/)[0])
}

// Converts a stored row to the form of a counted one. Stored rows have no kinds.
function asCounted ({ name, total: [median, halfWidth = Infinity] }) {
  return { name, total: { median, halfWidth } }
}

// One results file holds all Nodes: each run replaces only the rows that it counted.
function publish (result) {
  const { rows, name, node, date } = result
  const earlier = readResults('instructions')
  const kept = publishedRows(name).filter(({ name }) => !rows.some((row) => row.name === name))
  const { warmUp, requests } = FULL // the default for rows without their own values
  writeResults('instructions', { profile: { warmUp, requests }, nodes: { ...earlier?.nodes, [name]: { node, date, rows: inOrder([...kept, ...rows]) } } })
}
