'use strict'

// npm run bench -- settled: CPU time, throughput and memory of processes that V8 is done with.
//
// No two processes of one program run alike: V8 compiles with what it has seen by then. So each case has a dozen of them.
// Process k of every case is started, loaded until the size of its compiled code has not changed for a while, and then all
// of them take turns; the difference to the baseline is taken between processes that ran side by side, slice by slice. The
// collector only reads in a turn and counts after it (sink/keeping.js): it may share a core with the load, which it would hold up.
//
//   --case delivered    and its baseline; none: bare, floor, unsampled and delivered
//   --processes 12      of each case
//   --slices 16         turns of each process
//   --connections 50 --pipelining 1
//   --warm-up 80        slices of 20,000 requests, at most, until V8 is taken to be done
//   --semi-space 16     MiB: holds V8's young generation at that size, which else doubles when it likes; most of RSS is that
//   --tree, --node      as in npm run bench:instructions
//   --publish           writes bench/results/settled.json (with 10 pipelined on 100 connections: settled-pipelined.json; with --semi-space:
//                       settled-semi-space.json)
//   --as settled-busy   writes bench/results/settled-busy.json instead: a machine whose neighbours are busy, a longer load

const path = require('node:path')
const { chooseCases, HEADLINE_NODE } = require('./instructions/cases')
const { startTool, stop } = require('./run/processes')
const { startSettled, measureSlice, SLICE_REQUESTS } = require('./run/settle')
const { runBench } = require('./run/frame')
const { rotated } = require('./run/run')
const { nodeOfMajor } = require('./run/binaries')
const { mean95, median } = require('./run/statistics')
const { freePort } = require('../scripts/free-port')
const { settledRows } = require('./report/settled-table')

const ROOT = path.join(__dirname, '..')
const CASES = ['bare', 'floor', 'unsampled', 'delivered']
const FIGURES = ['cpu', 'user', 'system', 'perSecond', 'rssMB']

const OPTIONS = {
  numbers: { processes: 12, slices: 16, connections: 50, pipelining: 1, 'warm-up': 80, node: HEADLINE_NODE },
  others: { case: { type: 'string', multiple: true }, tree: { type: 'string', default: ROOT }, 'semi-space': { type: 'string' }, as: { type: 'string' } },
  file: ({ pipelining }, { as, 'semi-space': semiSpace }) => as ?? (semiSpace !== undefined ? 'settled-semi-space' : pipelining > 1 ? 'settled-pipelined' : 'settled'),
  print: ({ rows }) => console.table(settledRows(rows))
}

runBench(OPTIONS, async (profile, { case: names = CASES, tree, 'semi-space': semiSpace }) => {
  const flags = semiSpace === undefined ? [] : [`--min-semi-space-size=${semiSpace}`, `--max-semi-space-size=${semiSpace}`]
  const result = await measure(chooseCases(names), { ...profile, root: path.resolve(tree), flags })
  return { ...result, profile: { ...profile, semiSpace } }
})

async function measure (cases, profile) {
  const [load, sink] = await Promise.all([startTool('load', process.execPath), startTool('sink', process.execPath, 'keeping.js')])
  const options = { ...profile, warmUpSlicesMax: profile['warm-up'], load, sink, down: await freePort(), binary: nodeOfMajor(profile.node) }
  const samples = new Map(cases.map(({ name }) => [name, []])) // of each case, a figure a process
  let runtime
  for (let k = 0; k < profile.processes; k++) {
    const servers = new Map()
    for (const testCase of rotated(cases, k)) servers.set(testCase, await startSettled(testCase, options))
    const slices = new Map(cases.map((testCase) => [testCase, []]))
    for (let i = 0; i < profile.slices; i++) {
      for (const testCase of rotated(cases, i + k)) slices.get(testCase).push(await measureSlice(testCase, servers.get(testCase), options))
    }
    for (const [testCase, server] of servers) {
      samples.get(testCase.name).push({ slices: slices.get(testCase).map(figuresOf), requestsToSettle: server.slicesToSettle * SLICE_REQUESTS })
      runtime = server.ready.runtime
      await stop(server)
    }
    console.error(`process ${k + 1} of ${profile.processes}: ${cases.map(({ name }) => `${name} ${figureOf(samples.get(name).at(-1), 'cpu').toFixed(2)} µs`).join(', ')}`)
  }
  return { node: runtime, rows: cases.map((testCase) => rowOf(testCase, samples)) }
}

function figuresOf ({ user, system, perSecond, rssMB }) {
  return { cpu: user + system, user, system, perSecond, rssMB }
}

// A process's figure is the median of its slices.
function figureOf ({ slices }, figure) {
  return median(slices.map((slice) => slice[figure]))
}

// over, share (in parts of the baseline's): of processes that ran side by side, slice by slice, and then the median. A machine with
// neighbours may be half as fast a minute later; two slices beside each other are seconds apart.
function rowOf ({ name, label, against }, samples) {
  const own = samples.get(name)
  const row = { name, label, against, requestsToSettle: median(own.map(({ requestsToSettle }) => requestsToSettle)) }
  for (const figure of FIGURES) row[figure] = mean95(own.map((sample) => figureOf(sample, figure)))
  if (name === against) return row
  const base = samples.get(against)
  row.over = comparedBy((value, other) => value - other)
  row.share = comparedBy((value, other) => value / other)
  return row

  function comparedBy (compare) {
    return Object.fromEntries(FIGURES.map((figure) => [figure, mean95(own.map((process, k) => besides(process, base[k], figure, compare)))]))
  }
}

function besides ({ slices }, other, figure, compare) {
  return median(slices.map((slice, i) => compare(slice[figure], other.slices[i][figure])))
}
