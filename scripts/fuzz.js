'use strict'

// npm run fuzz [-- --minutes N | --seconds N] [--seed N] [--only target]
//
// Runs the fuzz tests for as long as you like, with a new seed in each round. A failure prints the input and the command that repeats it.

const { parseArgs } = require('node:util')
const { targets, fuzz } = require('../test/support/fuzz')

const ROUNDS_PER_SEED = 20_000

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seconds: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() >>> 0) },
    only: { type: 'string' }
  }
})
const names = Object.keys(targets).filter((name) => values.only === undefined || name === values.only)
const until = performance.now() + Number(values.seconds ?? Number(values.minutes) * 60) * 1000
let seed = Number(values.seed) >>> 0
let rounds = 0
let failed = 0

do {
  for (const name of names) {
    try {
      fuzz(name, ROUNDS_PER_SEED, seed)
      rounds += ROUNDS_PER_SEED
    } catch (error) {
      failed++
      console.error(`${error.message}\nagain: npm run fuzz -- --minutes 0 --seed ${seed} --only '${name}'`)
    }
  }
  seed = (seed + 1) >>> 0
} while (performance.now() < until && failed === 0)

console.log(`${rounds} inputs, the last seed was ${(seed - 1) >>> 0}`)
console.log(`${names.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
