'use strict'

// One tracer and the calls that it sees, slice by slice.

const { setTimeout: pause } = require('node:timers/promises')
const { answer } = require('../run/ipc')
const { openWorkloads } = require('./workloads')

// For what V8 puts off until there is time.
const SETTLE_MS = 100

const { tracer: name, sink, upstream, redis } = JSON.parse(process.argv[2])
const calls = { traced: 0, untraced: 0, slices: 0 }

main()

async function main () {
  const tracer = await require(`./tracers/${name}`)(`http://127.0.0.1:${sink}/${name}/v1/traces`)
  const workloads = await openWorkloads({ origin: `http://127.0.0.1:${upstream}`, redis })
  answer({
    slice: ({ workload, calls: count, traced }) => slice(tracer, workloads[workload], count, traced),
    cpuMicros,
    count: () => ({ calls, spans: tracer.counts() })
  })
  process.send({ ready: true, runtime: process.version })
}

// With or without subscribers the calls are those of a request, whose span is delivered.
// → the process's CPU µs when it began: to the beginning of its next one, that is what it took
async function slice (tracer, workload, count, traced) {
  if (traced) tracer.subscribe()
  else tracer.unsubscribe()
  const began = cpuMicros()
  await tracer.inSpan(() => workload(count, traced ? '/traced' : '/plain'))
  await tracer.flush()
  await pause(SETTLE_MS)
  calls[traced ? 'traced' : 'untraced'] += count
  calls.slices++
  return began
}

function cpuMicros () {
  const { user, system } = process.cpuUsage()
  return user + system
}
