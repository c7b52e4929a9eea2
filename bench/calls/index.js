'use strict'

// npm run bench -- calls [-- --rounds n] [--publish]: what a request's outgoing calls cost, on a machine that does not hold still.
//
// A tracer and a kind of call have a process of their own, pinned like the others: undici's channels are the process's, so
// that two tracers in one would both see every call, and V8 compiles for all kinds of calls that it has seen; most apps make
// them by one client. In a process slices with and without tracing take turns, and the tracer's subscribers are taken off
// the channels for those without. The processes take turns too, so whatever else the machine does hits all of them alike.
// A slice's figure is the CPU time of the whole process, user and system, over its calls, from its beginning to that of the
// process's next one: delivery is in it, and what V8 puts off until there is time. See paired.js. The young generation is
// large: where it is small, undici's garbage grows old and keeps more of it alive for many slices, with any tracer or none,
// and in whose figure that falls is chance.
//
// The called server and the collector are processes of their own. The called one is bare Fastify: its CPU per
// request is what this machine can be told by. Redis is a real redis-server; where there is none it says so.
// --publish writes bench/results/calls.json.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { HEADLINE_NODE } = require('../cases')
const installMissing = require('../install')
const { ask } = require('../run/ipc')
const { describeMachine, describeCommit } = require('../run/machine')
const { nodeOfMajor } = require('../run/binaries')
const { spawnPinned, pinBench } = require('../run/pinning')
const { readOptions } = require('../run/frame')
const { start, startTool, stopAll } = require('../run/processes')
const { writeResults } = require('../report/results-file')
const { callsTable } = require('../report/calls-table')
const { startRedis } = require('../../scripts/services/start')
const { directoryOf, installClients } = require('../../scripts/services/install')
const summarise = require('./summarise')

const ROUNDS = 40
const WARM_UP = 4

const WORKLOADS = [
  { name: 'fetch', calls: 3000 },
  { name: 'undici.request', calls: 6000 },
  { name: 'redis GET', calls: 15_000, only: 'light-trace', needs: 'redis' }
]
const node = nodeOfMajor(HEADLINE_NODE)

const TRACERS = ['light-trace', 'undici-instrumentation']

main().catch((error) => { console.error(error); process.exitCode = 1 }).finally(stopAll)

async function main () {
  const { profile: { rounds }, values } = readOptions({ rounds: ROUNDS })
  installMissing(['rivals'])
  const machine = describeMachine()
  pinBench() // and what is started here without a core of its own
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-calls-'))
  const redis = await redisIn(directory)
  try {
    const sink = await startTool('sink', node)
    const upstream = await child('load', 'upstream', {})
    const workloads = WORKLOADS.filter(({ needs }) => needs === undefined || redis !== null)
    const callers = []
    for (const workload of workloads) {
      for (const tracer of TRACERS.filter((name) => (workload.only ?? name) === name)) {
        const server = await child('server', 'caller', { tracer, sink: sink.ready.port, upstream: upstream.ready.port, redis: redis?.port })
        callers.push({ tracer, workload, server, slices: [] })
      }
    }
    const slices = await measure({ rounds, callers, upstream })
    const counted = await count(callers, sink)
    const result = {
      date: new Date().toISOString(),
      ...describeCommit(path.join(__dirname, '../..')),
      node: callers[0].server.ready.runtime,
      machine,
      rounds,
      redis: redis !== null,
      counted,
      ...summarise(slices, workloads)
    }
    console.log(callsTable(result))
    if (values.publish) writeResults('calls', result)
  } finally {
    await redis?.stop()
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

async function redisIn (directory) {
  const programs = directoryOf('redis-server')
  if (programs === undefined) {
    console.error('there is no redis-server here: a Redis GET is not measured')
    return null
  }
  await installClients(path.join(__dirname, '../../test/services'))
  return startRedis(programs, directory)
}

function child (role, file, options) {
  return start(spawnPinned(role, node, ['--min-semi-space-size=64', '--max-semi-space-size=64', path.join(__dirname, `${file}.js`), JSON.stringify(options)], { title: options.tracer ?? file }))
}

// → [{ workload, tracer, traced, micros, servedMicros }] of the rounds after the warm-up
async function measure ({ rounds, callers, upstream }) {
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const { tracer, workload: { name: workload, calls }, server, slices } of callers) {
      // Whoever is first in one round is second in the next.
      for (const traced of round % 2 === 0 ? [false, true] : [true, false]) {
        await ask(upstream, 'reset')
        const began = await ask(server, 'slice', { workload, calls, traced })
        const servedMicros = await ask(upstream, 'microsPerRequest')
        slices.push({ workload, tracer, traced, calls, round, began, servedMicros })
      }
    }
  }
  const ended = await Promise.all(callers.map(({ server }) => ask(server, 'cpuMicros')))
  return callers.flatMap(({ slices }, i) => slices
    .map((slice, k) => ({ ...slice, micros: ((slices[k + 1]?.began ?? ended[i]) - slice.began) / slice.calls }))
    .filter(({ round }) => round >= 0))
}

// A span that was not delivered, or that the sink has not seen, makes the run invalid.
async function count (callers, sink) {
  const counted = []
  let delivered = 0
  for (const { tracer, workload, server } of callers) {
    const { calls, spans } = await ask(server, 'count')
    if (spans.created !== calls.traced + calls.slices || spans.delivered !== spans.created) {
      throw new Error(`invalid: ${tracer} made ${spans.created} spans for ${calls.traced} calls in ${calls.slices} slices and delivered ${spans.delivered}`)
    }
    counted.push({ tracer, workload: workload.name, calls, spans })
    delivered += spans.delivered
  }
  const { spans: received } = await ask(sink, 'received')
  if (received !== delivered) throw new Error(`invalid: ${delivered} spans delivered, ${received} received`)
  const { checked, faults } = await ask(sink, 'check', { status: 200 })
  if (faults.length > 0) throw new Error(`invalid: ${faults.join('; ')}`)
  return { callers: counted, received, checked }
}
