'use strict'

// npm run bench -- paired: what a request costs, on a machine that does not hold still.
//
// The servers are those of npm run bench, several processes of each case, because no two of one program run
// alike. All of them take turns every few thousand requests; a slice's figure is the server process's CPU
// time, user and system, over its requests, until its spans are flushed and V8 has done what it puts off.
// Whatever else the machine does hits all cases alike, and the tenth percentile of a process's slices is
// what a request costs there when nothing does. A case is the median of its processes.
//
//   npm run bench -- paired -- [--cases a,b] [--against commit-or-folder] [--processes n] [--slices n] [--publish]
//
// --against: each light-trace case is measured with that commit, or the checkout in that folder, too, as `<case> there`.
// --publish measures the rivals and the other Nodes as well, and writes bench/results/paired.json, which the
// targets of bench/RESULTS.md are judged by.

const { cases, keptTickOf, HEADLINE_NODE } = require('./cases')
const installMissing = require('./install')
const chooseCases = require('./choose')
const { ask } = require('./run/ipc')
const { startTool, stopAll } = require('./run/processes')
const { startCase, rotated } = require('./run/run')
const { freePort } = require('../scripts/free-port')
const { pinBench } = require('./run/pinning')
const { readOptions } = require('./run/frame')
const { nodeOfMajor } = require('./run/binaries')
const folderOf = require('./run/checkout')
const { describeMachine, describeCommit } = require('./run/machine')
const { spread, quantile } = require('./run/statistics')
const { expectedAnswers } = require('./routes')
const { withSpread } = require('./report/markdown')
const { writeResults } = require('./report/results-file')

const CASES = ['bare', 'als-floor', 'lighttrace-off', 'lighttrace-unsampled', 'lighttrace-100']
const PROFILE = { requests: 4000, connections: 10, pipelining: 10, warmUpSlices: 8, settleMs: 100 }
const FLUSH_MS = 20_000

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const { profile: given, values } = readOptions({ processes: 3, slices: 25 }, { cases: { type: 'string' }, against: { type: 'string' } })
  const profile = { ...PROFILE, ...given }
  const names = values.cases?.split(',') ?? (values.publish ? undefined : CASES)
  const there = values.against && folderOf(values.against)
  const chosen = chooseCases(cases, { names, set: 'paired' }).flatMap((testCase) => pairOf(testCase, there))
  const machine = describeMachine()
  installMissing(new Set(chosen.flatMap(({ needs = [] }) => needs)))
  pinBench()
  try {
    const measured = await measure(chosen, profile)
    const rows = rowsOf(measured)
    console.table(rows.map(({ name, micros, over, overKept }) => ({ case: name, 'CPU µs': withSpread(micros, 2), over: withSpread(over, 2), 'over kept tick': withSpread(overKept, 2) })))
    if (values.publish) await publish({ date: new Date().toISOString(), ...describeCommit(__dirname), machine, node: measured[0].servers[0].ready.runtime, profile, spans: spansOf(measured), rows })
  } finally {
    await stopAll()
  }
}

function pairOf (testCase, folder) {
  if (folder === undefined || !testCase.setup.endsWith('/light-trace')) return [testCase]
  return [testCase, { ...testCase, name: `${testCase.name} there`, env: { ...testCase.env, LIGHT_TRACE_ROOT: folder } }]
}

/** → [{ testCase, servers, micros: [[a figure per slice] per server], … }] */
async function measure (chosen, profile) {
  const node = nodeOfMajor(HEADLINE_NODE)
  const [load, sink] = await Promise.all([startTool('load', node), startTool('sink', node)])
  const down = await freePort()
  const measured = chosen.map((testCase) => ({ testCase, servers: [], micros: [], created: 0, delivered: 0, requests: 0 }))
  for (let i = 0; i < profile.processes; i++) {
    for (const entry of rotated(measured, i)) {
      entry.servers.push(await startCase(entry.testCase, { sink, down, binaryFor: ({ node: major = HEADLINE_NODE }) => nodeOfMajor(major) }))
      entry.micros.push([])
    }
  }
  await ask(sink, 'expect')
  for (let i = -profile.warmUpSlices; i < profile.slices; i++) {
    for (let k = 0; k < profile.processes; k++) {
      for (const entry of rotated(measured, i + k + profile.warmUpSlices)) await slice(entry, k, i >= 0, { load, profile })
    }
  }
  await check(measured, sink)
  return measured
}

// k: which of the case's processes. counts: false in the warm-up.
async function slice (entry, k, counts, { load, profile }) {
  const server = entry.servers[k]
  const [request] = expectedAnswers('hello')
  const before = await ask(server, 'begin')
  const { requests } = await ask(load, 'slice', { ...profile, port: server.ready.port, path: request.path, answer: request.answer, headers: entry.testCase.headers })
  const { flushed } = await ask(server, 'end', { flushMs: FLUSH_MS, settleMs: profile.settleMs })
  if (counts) entry.micros[k].push((flushed.cpuMicros - before.cpuMicros) / requests)
  entry.requests += requests
  if (flushed.counts === null) return
  entry.created += flushed.counts.created - before.counts.created
  entry.delivered += flushed.counts.delivered - before.counts.delivered
}

async function check (measured, sink) {
  const { spans } = await ask(sink, 'received')
  for (const { testCase, created, delivered, requests } of measured) {
    if (testCase.delivers && delivered !== created) throw new Error(`invalid: ${testCase.name} created ${created} spans and delivered ${delivered}`)
    if (typeof testCase.spans === 'number' && created !== testCase.spans * requests) throw new Error(`invalid: ${testCase.name} created ${created} spans for ${requests} requests`)
  }
  const delivered = sum(measured, 'delivered')
  if (spans !== delivered) throw new Error(`invalid: ${delivered} spans delivered, ${spans} received`)
}

// Of a case's processes: the spread of their tenth percentiles. `over`: each process over its baseline's median; `overKept`:
// over that of the baseline that has what lib/runtime/timers.js does for a process.
function rowsOf (measured) {
  const levels = new Map(measured.map(({ testCase, micros }) => [testCase.name, micros.map((slices) => quantile(slices, 0.1))]))
  const over = (name, baseline) => {
    const base = spread(levels.get(baseline) ?? [])
    return base && spread(levels.get(name).map((level) => level - base.median))
  }
  return measured.map(({ testCase: { name, label, against = 'bare' }, servers }) => ({
    name,
    label,
    against,
    node: servers[0].ready.runtime,
    micros: spread(levels.get(name)),
    over: over(name, against),
    overKept: over(name, keptTickOf(against))
  }))
}

function spansOf (measured) {
  return { created: sum(measured, 'created'), delivered: sum(measured, 'delivered') }
}

function sum (list, key) {
  return list.reduce((total, entry) => total + entry[key], 0)
}

async function publish (result) {
  console.error(`wrote ${writeResults('paired', result)}`)
  require('./report/publish')()
}
