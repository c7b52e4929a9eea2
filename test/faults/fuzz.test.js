'use strict'

// Every parser of bytes from outside: never a throw, never more than linear time. A longer run: npm run fuzz.

const { test } = require('tap')
const { targets, fuzz, longInputs, randomFrom } = require('../support/fuzz')

const SEED = 20261121
const ROUNDS = process.env.LIGHT_TRACE_LONG === '1' ? 200_000 : 20_000

for (const name of Object.keys(targets)) {
  test(`${name}: no input makes it throw`, async (t) => {
    t.doesNotThrow(() => fuzz(name, ROUNDS, SEED))
  })

  // No clock: a busy machine would fail it. What takes quadratic time for this length is not done when the
  // runner gives up.
  test(`${name}: inputs of half a megabyte are done with`, async (t) => {
    const random = randomFrom(SEED)
    const inputs = longInputs(name, 2 ** 19)
    for (const input of inputs) targets[name].run(input, random)
    t.pass(`${inputs.length} inputs`)
  })
}
