'use strict'

// A micro-benchmark: checks that the function works, then prints the time and the bytes of garbage of one call. The bytes are proof
// where a function's comment states a budget. The time is only a hint: the cost of a request is measured with whole requests.

const fs = require('node:fs')
const { spread, median } = require('../run/statistics')

const WARM_UP_MS = 300
const SAMPLES = 15
const SAMPLE_MS = 30
const CALLS_FOR_BYTES = 10_000

module.exports = bench

// check: throws if the output is wrong; runs before and after. run: makes `times` calls.
// bytesMax: garbage allowed per call; more fails the benchmark. step: the step of a request in docs/architecture.md.
function bench (name, { check, run, bytesMax = Infinity, step = null }) {
  check()
  let times = 1000
  const until = performance.now() + WARM_UP_MS
  while (performance.now() < until) run(times)
  while (timed(run, times) < SAMPLE_MS) times *= 2

  const nanos = spread(Array.from({ length: SAMPLES }, () => timed(run, times) * 1e6 / times))
  const bytes = bytesPerCall(run)
  check()

  const tooMany = bytes > bytesMax
  console.log(`${name.padEnd(52)} ${nanos.median.toFixed(1).padStart(8)} ns (${nanos.min.toFixed(1)}…${nanos.max.toFixed(1)})  ${bytes.toFixed(0).padStart(5)} bytes${tooMany ? `, over its budget of ${bytesMax}` : ''}`)
  if (tooMany) process.exitCode = 1
  if (process.env.MICRO_RESULTS) fs.appendFileSync(process.env.MICRO_RESULTS, JSON.stringify({ name, step, nanos, bytes }) + '\n')
}

function timed (run, times) {
  const start = performance.now()
  run(times)
  return performance.now() - start
}

// Takes the median, since a compilation in between adds bytes and a collection removes some.
function bytesPerCall (run) {
  return median(Array.from({ length: 9 }, () => {
    globalThis.gc()
    const before = process.memoryUsage().heapUsed
    run(CALLS_FOR_BYTES)
    return (process.memoryUsage().heapUsed - before) / CALLS_FOR_BYTES
  }))
}
