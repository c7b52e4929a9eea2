'use strict'

// npm run bench:tail: the latency of the slowest hundredth of requests at half of the capacity, traced beside bare.
//
// A single p99 is chance: one collection of garbage or one neighbour makes it. So there are several hundred windows of bare
// and traced, in turn, on settled processes, and what is compared is each window with the one beside it: the median of the
// differences, and where it lies with 95 % confidence. The rate is half of what bare Fastify answers, for both. A request's
// latency counts from when it was due.
//
//   --windows 300 --seconds 0.4    of each case
//   --case delivered               beside its baseline
//   --connections 50 --warm-up 80 --node
//   --publish                      writes bench/results/tail.json

const path = require('node:path')
const { parseArgs } = require('node:util')
const { chooseCases, HEADLINE_NODE } = require('./instructions/cases')
const { nodeOfMajor } = require('./run/binaries')
const { ask } = require('./run/ipc')
const { describeCommit, describeMachine, watchSteal } = require('./run/machine')
const { pinBench } = require('./run/pinning')
const { startTool, stopAll, freeze, thaw } = require('./run/processes')
const { startSettled, measureSlice } = require('./run/settle')
const { median, medianInterval } = require('./run/statistics')
const { routes } = require('./routes')
const { freePort } = require('../scripts/free-port')
const { writeResults } = require('./report/results-file')

const ROOT = path.join(__dirname, '..')
const CAPACITY_SLICES = 3

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const number = (value) => ({ type: 'string', default: String(value) })
  const { values } = parseArgs({
    options: {
      case: { type: 'string', default: 'delivered' },
      windows: number(300),
      seconds: number(0.4),
      connections: number(50),
      'warm-up': number(80),
      node: number(HEADLINE_NODE),
      publish: { type: 'boolean', default: false }
    }
  })
  const profile = Object.fromEntries(['windows', 'seconds', 'connections', 'warm-up', 'node'].map((key) => [key, Number(values[key])]))
  const machine = describeMachine()
  pinBench()
  try {
    const result = await measure(chooseCases([values.case]), profile)
    console.log(result)
    if (values.publish) console.error(`wrote ${writeResults('tail', { date: new Date().toISOString(), ...describeCommit(__dirname), machine, profile, ...result })}`)
  } finally {
    await stopAll()
  }
}

async function measure ([base, traced], profile) {
  const steal = watchSteal()
  const [load, sink] = await Promise.all([startTool('load', process.execPath), startTool('sink', process.execPath)])
  const options = { ...profile, pipelining: 1, warmUpSlicesMax: profile['warm-up'], root: ROOT, load, sink, down: await freePort(), binary: nodeOfMajor(profile.node) }
  const servers = []
  for (const testCase of [base, traced]) servers.push({ testCase, server: await startSettled(testCase, options), p99: [], p50: [], windowsBehind: 0 })
  const slices = []
  for (let i = 0; i < CAPACITY_SLICES; i++) slices.push(await measureSlice(base, servers[0].server, options))
  const rate = Math.round(median(slices.map(({ perSecond }) => perSecond)) / 2)
  for (let i = 0; i < profile.windows; i++) {
    for (const entry of i % 2 === 0 ? servers : servers.toReversed()) await measureWindow(entry, rate, options)
  }
  return { node: servers[0].server.ready.runtime, stolen: steal(), rate, ...compare(servers) }
}

// What is left of its spans is sent before the window: in it, the exporter sends as it does.
async function measureWindow (entry, rate, { load, seconds, connections }) {
  const { testCase, server, p99, p50 } = entry
  thaw(server)
  await ask(server, 'flush')
  const { latencyMs, failed, behind } = await ask(load, 'run', {
    url: `http://127.0.0.1:${server.ready.port}`,
    requests: routes[testCase.route].requests,
    headers: testCase.headers,
    connections,
    pipelining: 1,
    seconds,
    rate
  })
  freeze(server)
  if (failed > 0) throw new Error(`invalid: ${failed} requests of ${testCase.name} failed`)
  if (behind > rate * seconds / 100) entry.windowsBehind++ // a window all the same: its latencies say it
  p99.push(latencyMs.p99)
  p50.push(latencyMs.p50)
}

function compare ([base, traced]) {
  const of = ({ testCase, p99, p50, windowsBehind }) => ({ name: testCase.name, label: testCase.label, windowsBehind, p50: medianInterval(p50), p99: medianInterval(p99) })
  const over = (key) => medianInterval(traced[key].map((value, i) => value - base[key][i]))
  const [bare, own] = [of(base), of(traced)]
  const share = (interval, { median }) => ({ median: interval.median / median, low: interval.low / median, high: interval.high / median })
  return { rows: [bare, own], over: { p50: over('p50'), p99: over('p99') }, share: { p50: share(over('p50'), bare.p50), p99: share(over('p99'), bare.p99) } }
}
