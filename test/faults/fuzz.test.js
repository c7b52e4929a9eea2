'use strict'

// Every parser of bytes from outside: never a throw. That none does more than linear work is in linear-work.test.js.
// A longer run: npm run fuzz.

const { test } = require('tap')
const { targets, fuzz, longInputs, randomFrom } = require('../support/fuzz')

const SEED = 20261121
const ROUNDS = process.env.LIGHT_TRACE_LONG === '1' ? 200_000 : 20_000

for (const name of Object.keys(targets)) {
  test(`${name}: no input makes it throw`, async (t) => {
    t.doesNotThrow(() => fuzz(name, ROUNDS, SEED))
  })

  // What native functions do makes no steps that linear-work.test.js could count: here it has to end.
  test(`${name}: nor does half a megabyte of anything`, async (t) => {
    const random = randomFrom(SEED)
    for (const input of longInputs(name, 2 ** 19)) t.doesNotThrow(() => targets[name].run(input, random))
  })
}
