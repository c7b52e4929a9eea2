'use strict'

// Measures the cost of process.nextTick before and after a garbage collection that finds no live record of one.
//
//   node --expose-gc bench/upstream/next-tick.js
//   node --expose-gc bench/upstream/next-tick.js keep     keeps one record alive meanwhile

const { executionAsyncResource } = require('node:async_hooks')

const TICKS = 200_000
const kept = []

main()

async function main () {
  if (process.argv[2] === 'keep') process.nextTick(() => kept.push(executionAsyncResource()))
  for (let i = 0; i < 3; i++) await measure() // lets V8 compile
  const before = await measure()
  await new Promise((resolve) => setTimeout(resolve, 100))
  for (let i = 0; i < 4; i++) globalThis.gc() // no tick is pending, so no record is alive except the one in `kept`
  for (let i = 0; i < 3; i++) await measure()
  const after = await measure()
  console.log(`Node ${process.version}: ${before.toFixed(0)} ns a tick before, ${after.toFixed(0)} ns after a collection`)
}

function measure () {
  return new Promise((resolve) => {
    let left = TICKS
    const start = process.cpuUsage()
    setImmediate(function turn () {
      for (let i = 0; i < 100; i++) process.nextTick(onTick, left)
      setImmediate(left > 0 ? turn : () => resolve(process.cpuUsage(start).user * 1000 / TICKS))
    })
    function onTick () { left-- }
  })
}
