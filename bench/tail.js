'use strict'

// npm run bench -- tail: the latency of the slowest hundredth of requests at half of the capacity, traced beside bare.
//
// A single p99 is chance: one collection of garbage or one neighbour makes it. So there are several hundred windows of bare
// and traced, in turn, on settled processes, and what is compared is each window with the one beside it: the median of the
// differences, and where it lies with 95 % confidence. The rate is half of what bare Fastify answers, for both. A request's
// latency counts from when it was due.
//
// Where there are two cores the load shares its own with the collector, and what the collector does there makes the load late.
// So ours only reads while a window runs (sink/keeping.js), and spans are counted after it: all of them have to be there. How
// late the load was all the same stands in the result.
//
//   --windows 300 --seconds 0.4    of each case
//   --case delivered               beside its baseline
//   --tree /other/checkout         measured instead of this one; several of them take turns
//   --connections 50 --warm-up 80 --node
//   --publish                      writes bench/results/tail.json

const path = require('node:path')
const { chooseCases, HEADLINE_NODE } = require('./instructions/cases')
const { nodeOfMajor } = require('./run/binaries')
const { ask } = require('./run/ipc')
const { runBench } = require('./run/frame')
const { startTool, freeze, thaw } = require('./run/processes')
const { startSettled, measureSlice, countArrived } = require('./run/settle')
const { rotated } = require('./run/run')
const { median, medianInterval } = require('./run/statistics')
const { routes, expectedAnswers } = require('./routes')
const { freePort } = require('../scripts/free-port')

const ROOT = path.join(__dirname, '..')
const CAPACITY_SLICES = 3

const OPTIONS = {
  numbers: { windows: 300, seconds: 0.4, connections: 50, 'warm-up': 80, node: HEADLINE_NODE },
  others: { case: { type: 'string', default: 'delivered' }, tree: { type: 'string', multiple: true, default: [ROOT] } },
  file: 'tail',
  print: (result) => console.dir(result, { depth: null })
}

runBench(OPTIONS, (profile, { case: name, tree }) => measure(chooseCases([name]), { ...profile, trees: tree.map((folder) => path.resolve(folder)) }))

async function measure ([base, traced], { trees, ...profile }) {
  const [load, sink] = await Promise.all([startTool('load', process.execPath), startTool('sink', process.execPath, 'keeping.js')])
  const options = { ...profile, pipelining: 1, warmUpSlicesMax: profile['warm-up'], load, sink, down: await freePort(), binary: nodeOfMajor(profile.node) }
  const entries = [{ testCase: base, root: trees[0] }, ...trees.map((root) => ({ testCase: traced, root }))]
  for (const entry of entries) {
    entry.server = await startSettled(entry.testCase, { ...options, root: entry.root })
    Object.assign(entry, { p50: [], p99: [], late: [], windowsBehind: 0 })
  }
  const slices = []
  for (let i = 0; i < CAPACITY_SLICES; i++) slices.push(await measureSlice(base, entries[0].server, options))
  const rate = Math.round(median(slices.map(({ perSecond }) => perSecond)) / 2)
  for (let i = 0; i < profile.windows; i++) {
    for (const entry of rotated(entries, i)) await measureWindow(entry, rate, options)
  }
  await checkSpans(traced, sink)
  return { node: entries[0].server.ready.runtime, rate, ...compare(entries) }
}

// What is left of its spans is sent before the window and after it: in it, the exporter sends as it does.
async function measureWindow (entry, rate, { load, sink, seconds, connections }) {
  const { testCase, server, p99, p50, late } = entry
  const [{ path, answer }] = expectedAnswers(testCase.route)
  thaw(server)
  const before = await ask(server, 'flush')
  const { requests, latencyMs, lateMs, behind } = await ask(load, 'paced', { port: server.ready.port, path, answer, headers: testCase.headers, connections, seconds, rate })
  const after = await ask(server, 'flush')
  freeze(server)
  await countArrived(testCase, sink, { requests, delivered: after?.delivered - before?.delivered })
  if (behind > rate * seconds / 100) entry.windowsBehind++ // a window all the same: its latencies say it
  p99.push(latencyMs.p99)
  p50.push(latencyMs.p50)
  late.push(lateMs.p99)
}

async function checkSpans ({ name, route }, sink) {
  const { faults } = await ask(sink, 'check', { route: routes[route].route, status: routes[route].status ?? 200 })
  if (faults.length > 0) throw new Error(`invalid: ${name}: ${faults.join('; ')}`)
}

// over, share: of the first traced one
function compare ([base, ...traced]) {
  const of = ({ testCase, root, p99, p50, late, windowsBehind }) => ({ name: testCase.name, label: testCase.label, ...(root !== ROOT && { root }), windowsBehind, p50: medianInterval(p50), p99: medianInterval(p99), late: medianInterval(late) })
  const bare = of(base)
  const rows = traced.map((entry) => ({ ...of(entry), ...difference(base, bare, entry) }))
  const { over, share } = rows[0]
  return { rows: [bare, ...rows], over, share }
}

function difference (base, bare, entry) {
  const over = (key) => medianInterval(entry[key].map((value, i) => value - base[key][i]))
  const share = ({ median, low, high }, whole) => ({ median: median / whole, low: low / whole, high: high / whole })
  const [p50, p99] = [over('p50'), over('p99')]
  return { over: { p50, p99 }, share: { p50: share(p50, bare.p50.median), p99: share(p99, bare.p99.median) } }
}
