'use strict'

// What a process.nextTick takes, before and after a garbage collection that finds no record of one alive.
//
//   node --expose-gc bench/upstream/next-tick.js
//   node --expose-gc bench/upstream/next-tick.js keep     one record is kept alive meanwhile

const { executionAsyncResource } = require('node:async_hooks')

const TICKS = 200_000
const kept = []

main()

async function main () {
  if (process.argv[2] === 'keep') process.nextTick(() => kept.push(executionAsyncResource()))
  for (let i = 0; i < 3; i++) await measure() // V8 compiles
  const before = await measure()
  await new Promise((resolve) => setTimeout(resolve, 100))
  for (let i = 0; i < 4; i++) globalThis.gc() // no tick waits now: but for the one in `kept`, no record is alive
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
