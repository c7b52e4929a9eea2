'use strict'

// Every parser of external bytes does linear work. The work is counted and not timed, so a busy machine does not change the result. Work
// inside a regular expression is not counted. ESLint's regexp plugin checks that these are linear (eslint.config.js).

const { test } = require('tap')
const counter = require('../support/steps').countSteps() // before the code that it counts is loaded
const { targets, longInputs, randomFrom } = require('../support/fuzz')
const { halvesOf } = require('../../lib/otlp/request')

const SEED = 20261121
const LENGTH = 1000 // TIMES times this is still within the limits of tracestate and baggage
const TIMES = 8 // quadratic work would be 64 times as much
const SLACK = 1.25
const STEPS_LEAST = 200 // below this, the constant part dominates

for (const name of Object.keys(targets)) {
  test(`${name}: eight times the input is at most eight times the work`, async (t) => {
    const { lengthMax = Infinity } = targets[name] // longer inputs are not read
    const length = Math.min(LENGTH, Math.floor(lengthMax / TIMES))
    const long = longInputs(name, length * TIMES)
    let counted = 0
    for (const [index, input] of longInputs(name, length).entries()) {
      const steps = (text) => counter.steps(() => targets[name].run(text, randomFrom(SEED)))
      const few = steps(input)
      const many = steps(long[index])
      t.notOk(isTooMany(few, many), `${few} → ${many} steps: ${JSON.stringify(input.toString('latin1').slice(0, 30))}…`)
      counted += few
    }
    t.ok(counted > 0, `${counted} steps are counted`)
  })
}

function isTooMany (few, many) {
  return many > Math.max(few, STEPS_LEAST) * TIMES * SLACK
}

test('the test detects quadratic work', async (t) => {
  const work = (length) => counter.steps(() => { for (let i = 0; i < length * length; i++) halvesOf(Buffer.alloc(0), 0, 0) })
  const few = work(16)
  t.ok(few >= 16 * 16)
  t.ok(work(16 * TIMES) > few * TIMES * SLACK)
})
