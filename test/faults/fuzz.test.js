'use strict'

// No parser of external bytes ever throws. linear-work.test.js checks that their work is linear. A longer run: npm run fuzz.

const { test } = require('tap')
const { targets, fuzz, longInputs, randomFrom } = require('../support/fuzz')

const SEED = 20261121
const ROUNDS = process.env.LIGHT_TRACE_LONG === '1' ? 200_000 : 20_000

for (const name of Object.keys(targets)) {
  test(`${name}: no input makes it throw`, async (t) => {
    t.doesNotThrow(() => fuzz(name, ROUNDS, SEED))
  })

  // linear-work.test.js cannot count the work inside native functions. This test checks that they finish.
  test(`${name}: no input of half a megabyte makes it throw`, async (t) => {
    const random = randomFrom(SEED)
    for (const input of longInputs(name, 2 ** 19)) t.doesNotThrow(() => targets[name].run(input, random))
  })
}
