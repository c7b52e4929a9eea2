'use strict'

// npm run bench -- faults [-- --pairs 30] [--only reset] [--publish]: checks whether a collector fault delays or changes responses.
//
// One process holds an app without light-trace and an app whose collector has one kind of fault. They take turns answering requests
// at a fixed rate, in half-second slices, so other activity on the machine affects both equally. The figure of a slice is its 99th
// percentile latency. The reported figure compares each slice with the fault to the mean of the bare slices before and after it, and
// takes the median of these differences. Two controls validate the method: bare against bare, and an event loop that is blocked on
// purpose. The collector runs in its own process. Writes bench/results/faults.json.

const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { fork } = require('node:child_process')
const { setTimeout: pause } = require('node:timers/promises')
const { cases, STALL_MS, STALL_EVERY_MS } = require('./faults/cases')
const { Client } = require('./faults/client')
const { startApp, expectedRequests } = require('./faults/app')
const { compare, verdict } = require('./faults/compare')
const { writeResults } = require('./report/results-file')
const { describeMachine, describeCommit, watchSteal } = require('./run/machine')
const { readOptions } = require('./run/frame')

const SLICE_MS = 500
const PER_SECOND = 2000
// Work left over from one slice (a timeout, a chunk being compressed) should not end in the other app's slice.
const BETWEEN_MS = 20
const WARM_UP_PAIRS = 3
const FILLER_SPANS = 500
// Time to compress what was just buffered, and to collect the garbage of doing so.
const FILLED_MS = 200

const { profile: { pairs }, values } = readOptions({ pairs: 30 }, { only: { type: 'string', default: '' } })

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  takePrecedence()
  const machine = describeMachine()
  const stolen = watchSteal()
  const bare = await startApp(null)
  const requests = await expectedRequests(bare.port)
  const rows = []
  for (const testCase of cases.filter(({ name }) => name.includes(values.only))) {
    const row = await measure(testCase, bare, requests)
    console.log(`${row.over.median.toFixed(2).padStart(6)} ms (${row.over.low.toFixed(2)}…${row.over.high.toFixed(2)})  calm ${row.calm.toFixed(2)}  p50 ${row.overP50.median.toFixed(3)}  ${row.row.padEnd(4)} ${row.name}${verdict(row)}`)
    rows.push(row)
  }
  await bare.close()
  const result = {
    date: new Date().toISOString(),
    node: process.version,
    ...describeCommit(path.join(__dirname, '..')),
    machine,
    steal: stolen(),
    profile: { pairs, sliceMs: SLICE_MS, perSecond: PER_SECOND },
    rows
  }
  if (values.publish) console.log(`wrote ${writeResults('faults', result)}`)
  if (rows.some((row) => verdict(row) !== '')) process.exitCode = 1
}

// Raises the priority where that is allowed (as root). Otherwise the 99th percentile measures the machine's other processes.
function takePrecedence () {
  try {
    os.setPriority(os.constants.priority.PRIORITY_HIGH)
  } catch {}
}

async function measure (testCase, bare, requests) {
  const collector = fork(path.join(__dirname, 'faults/collector.js'), testCase.isTls ? ['tls'] : [])
  os.setPriority(collector.pid, 10) // so that its decoding does not take the app's core on a machine with only two
  const [url] = await once(collector, 'message')
  const tell = async (message) => {
    collector.send(message)
    return (await once(collector, 'message'))[0]
  }
  const { trace } = testCase
  const subject = await startApp(testCase.isBare ? null : { ...trace, exporter: { ...trace.exporter, url } })
  const clients = [new Client(requests), new Client(requests)]
  await clients[0].connect(bare.port)
  await clients[1].connect(subject.port)
  const [control, slices] = [[], []]
  await begin(testCase, subject.app, tell)
  for (let i = -WARM_UP_PAIRS; i <= pairs; i++) {
    const before = await slice(clients[0])
    if (i >= 0) control.push(before)
    if (i === pairs) break
    await prepare(testCase, subject.app, tell)
    const stall = testCase.isStalled ? setInterval(hold, STALL_EVERY_MS) : null
    const snapshot = testCase.snapshots ? subject.app.lightTrace.snapshot() : null
    const after = await slice(clients[1])
    clearInterval(stall)
    await snapshot
    if (i >= 0) slices.push(after)
  }
  await tell({ flapEveryMs: 0 })
  await tell({ isDown: false, how: testCase.how?.status === 503 || testCase.isDown ? {} : undefined })
  await pause(SLICE_MS) // a pending attempt still fails
  await subject.app.lightTrace?.flush({ timeoutMs: 2000 })
  const stats = subject.app.lightTrace?.stats() ?? null
  const counted = await tell('count')
  for (const client of clients) client.close()
  await subject.close()
  collector.disconnect()
  return {
    row: testCase.row ?? '',
    name: testCase.name,
    isControl: testCase.isBare === true,
    isStalled: testCase.isStalled === true,
    ...compare(control, slices),
    answers: clients[1].answered,
    wrong: clients[0].wrong + clients[1].wrong,
    hasHappened: testCase.happened?.({ stats, collector: counted }) ?? true,
    exports: stats?.exports,
    spans: stats?.spans,
    collector: counted
  }
}

async function begin ({ how, isDown, flapEveryMs, fillsFirst = 0 }, { lightTrace: plugin }, tell) {
  await tell({ how, isDown, flapEveryMs })
  for (let round = 0; round < fillsFirst; round++) await fill(plugin)
}

// Runs before a slice with the fault, outside the measured time. It forces an export attempt, so that every slice contains one
// however long the exporter would wait.
async function prepare ({ comesBack }, { lightTrace: plugin }, tell) {
  if (plugin === undefined) return
  if (comesBack) {
    await tell({ isDown: true })
    await fill(plugin)
    await tell({ isDown: false })
  }
  plugin.flush({ timeoutMs: SLICE_MS })
}

// Adds spans until some have to be dropped.
async function fill ({ tracer, stats }) {
  const lost = () => stats().spans.thinned
  for (const before = lost(); lost() === before;) {
    for (let i = 0; i < FILLER_SPANS; i++) tracer.startSpan('filler', { attributes: { 'db.query.text': `select * from orders where id = ${i}`, 'server.address': 'db.example' } }).end()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await pause(FILLED_MS)
}

async function slice (client) {
  await pause(BETWEEN_MS)
  return client.run(SLICE_MS, PER_SECOND)
}

function hold () {
  const until = performance.now() + STALL_MS
  while (performance.now() < until);
}
