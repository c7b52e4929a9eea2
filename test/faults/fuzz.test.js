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

  test(`${name}: sixteen times the length takes no hundred times the time`, async (t) => {
    const random = randomFrom(SEED)
    const time = (input) => {
      const before = performance.now()
      targets[name].run(input, random)
      return performance.now() - before
    }
    const short = longInputs(name, 16 * 1024)
    const long = longInputs(name, 256 * 1024)
    for (let i = 0; i < short.length; i++) {
      // The quickest of three: a pause of the machine is not the parser's.
      const base = Math.min(time(short[i]), time(short[i]), time(short[i]))
      const ratioHolds = [1, 2, 3].some(() => time(long[i]) < 100 * Math.max(base, 0.2))
      if (!ratioHolds) t.fail(`slow for ${JSON.stringify(short[i].toString('latin1').slice(0, 40))}…`)
    }
    t.pass(`${short.length} inputs`)
  })
}
