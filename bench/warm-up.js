'use strict'

// npm run bench -- warm-up: requests a second of the first minute at full load, traced beside bare, and the size of what V8 has
// compiled. The two processes take turns, so the minute is one of load, not of the clock. Nothing is traced of V8 itself:
// which functions it compiles and gives up is what npm run bench:v8 shows.
//
//   --seconds 60 --case delivered --connections 50 --node
//   --publish                  writes bench/results/warm-up.json

const path = require('node:path')
const { chooseCases, HEADLINE_NODE } = require('./instructions/cases')
const { nodeOfMajor } = require('./run/binaries')
const { runBench } = require('./run/frame')
const { startTool, freeze } = require('./run/processes')
const { startUnsettled, measureSlice } = require('./run/settle')
const { median } = require('./run/statistics')
const { freePort } = require('../scripts/free-port')

const ROOT = path.join(__dirname, '..')
// What is shown: from the end of the one before to each of these, in seconds of load.
const SPANS = [1, 2, 4, 8, 15, 30, 45, 60]
const SLICE_REQUESTS = 5000

const OPTIONS = {
  numbers: { seconds: 60, connections: 50, node: HEADLINE_NODE },
  others: { case: { type: 'string', default: 'delivered' } },
  file: 'warm-up',
  print: ({ rows }) => console.table(rows)
}

runBench(OPTIONS, (profile, values) => measure(chooseCases([values.case]), profile))

async function measure (cases, profile) {
  const [load, sink] = await Promise.all([startTool('load', process.execPath), startTool('sink', process.execPath, 'keeping.js')])
  const options = { ...profile, pipelining: 1, sliceRequests: SLICE_REQUESTS, root: ROOT, load, sink, down: await freePort(), binary: nodeOfMajor(profile.node) }
  const runs = []
  for (const testCase of cases) {
    const server = await startUnsettled(testCase, options)
    freeze(server)
    runs.push({ testCase, server, seconds: 0, slices: [] })
  }
  while (runs.some(({ seconds }) => seconds < profile.seconds)) {
    for (const run of runs) {
      const slice = await measureSlice(run.testCase, run.server, options)
      run.seconds += SLICE_REQUESTS / slice.perSecond
      run.slices.push({ until: run.seconds, ...slice })
    }
  }
  return { node: runs[0].server.ready.runtime, rows: rowsOf(runs, profile.seconds) }
}

function rowsOf ([base, traced], seconds) {
  return SPANS.filter((until) => until <= seconds).map((until, i) => {
    const from = SPANS[i - 1] ?? 0
    const within = ({ slices }, figure) => median(slices.filter((slice) => slice.until > from && slice.until <= until).map((slice) => slice[figure]))
    const [barePerSecond, tracedPerSecond] = [within(base, 'perSecond'), within(traced, 'perSecond')]
    return {
      from,
      until,
      barePerSecond: Math.round(barePerSecond),
      tracedPerSecond: Math.round(tracedPerSecond),
      share: tracedPerSecond / barePerSecond,
      bareCodeKB: Math.round(within(base, 'codeBytes') / 1024),
      tracedCodeKB: Math.round(within(traced, 'codeBytes') / 1024)
    }
  })
}
