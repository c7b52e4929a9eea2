'use strict'

// Measures the memory that is still in use.

const v8 = require('node:v8')
const vm = require('node:vm')

const COLLECTIONS = 10

v8.setFlagsFromString('--expose-gc')
const gc = vm.runInNewContext('gc')

module.exports = { bytesInUse, gc }

/**
 * The bytes of the heap and of buffers, in the lowest of several measurements. A single collection is not enough: it may only finish one
 * that began earlier, and V8 frees the memory of dead buffers later, in another thread. What was used in the current turn of the event
 * loop, such as the target of a dereferenced WeakRef, is kept until its end.
 */
async function bytesInUse () {
  let least = Infinity
  for (let i = 0; i < COLLECTIONS; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    gc()
    const { heapUsed, external } = process.memoryUsage()
    least = Math.min(least, heapUsed + external)
  }
  return least
}
