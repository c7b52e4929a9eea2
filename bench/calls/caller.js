'use strict'

// One tracer and the calls that it sees, slice by slice.

const { answer } = require('../run/ipc')
const { openWorkloads } = require('./workloads')

const { tracer: name, sink, upstream, redis } = JSON.parse(process.argv[2])
const calls = { traced: 0, untraced: 0, slices: 0 }

main()

async function main () {
  const tracer = await require(`./tracers/${name}`)(`http://127.0.0.1:${sink}/${name}/v1/traces`)
  const workloads = await openWorkloads({ origin: `http://127.0.0.1:${upstream}`, redis })
  answer({
    slice: ({ workload, calls: count, traced }) => slice(tracer, workloads[workload], count, traced),
    count: () => ({ calls, spans: tracer.counts() })
  })
  process.send({ ready: true })
}

// → CPU µs of the process per call
async function slice (tracer, workload, count, traced) {
  if (traced) tracer.subscribe()
  else tracer.unsubscribe()
  const work = () => workload(count, traced ? '/traced' : '/plain')
  const before = process.cpuUsage()
  if (traced) {
    await tracer.inSpan(work)
    await tracer.flush()
  } else {
    await work()
  }
  const { user, system } = process.cpuUsage(before)
  calls[traced ? 'traced' : 'untraced'] += count
  if (traced) calls.slices++
  return (user + system) / count
}
