'use strict'

// npm run bench:ci: fails when a ratio falls out of its bound. Ratios of one run, never absolute
// times; the bounds are what was last committed plus a multiple of how much it scattered, not the
// targets. Below four minutes on two cores.
//
// npm run bench:ci -- --update measures and writes bench/results/ci-bounds.json.

const { cases, HEADLINE_NODE } = require('./cases')
const chooseCases = require('./choose')
const { describeMachine, describeCommit } = require('./run/machine')
const startProgress = require('./run/progress')
const { run, stepsOf } = require('./run/run')
const summarise = require('./report/summary')
const consoleTable = require('./report/console-table')
const { readResults, writeResults, roundsByName } = require('./report/results-file')
const { measureRatios } = require('./ratios')

const PROFILE = { rounds: 15, seconds: 1.2, warmup: 2, connections: 50, pipelining: 1, rate: 0 }
// A run whose median is this many spreads off is not that code on a busy day.
const SPREADS = 3
// Rounds that happen to agree closely must not make a bound that the next machine cannot hold.
const LEAST_MARGIN = 0.05
const BOUNDS = 'ci-bounds'

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const update = process.argv.includes('--update')
  const bounds = readResults(BOUNDS)
  if (!bounds && !update) throw new Error('there are no bounds yet: npm run bench:ci -- --update')

  const chosen = chooseCases(cases, { set: 'ci' })
  const measured = await run(chosen, { profile: PROFILE, headlineNode: HEADLINE_NODE, progress: startProgress(stepsOf(chosen, PROFILE)) })
  const rows = summarise(measured)
  console.log('\n' + consoleTable(rows))
  const invalid = rows.filter(({ faults }) => faults.length > 0)
  const ratios = measureRatios(roundsByName(measured))

  if (invalid.length > 0) throw new Error(`invalid: ${invalid.map(({ name }) => name).join(', ')}`)
  if (update) return writeBounds(ratios)
  const fallen = compare(ratios, bounds.ratios)
  console.log(`${ratios.length - fallen} passed, ${fallen} failed`)
  if (fallen > 0) process.exitCode = 1
}

function writeBounds (ratios) {
  const file = writeResults(BOUNDS, {
    date: new Date().toISOString(),
    ...describeCommit(__dirname),
    machine: describeMachine(),
    profile: PROFILE,
    ratios: ratios.map((ratio) => ({ ...ratio, atMost: ratio.median + Math.max(SPREADS * (ratio.max - ratio.min), LEAST_MARGIN) }))
  })
  console.error(`wrote ${file}`)
}

// → how many fell out
function compare (ratios, bounds) {
  let fallen = 0
  for (const { name, median, min, max } of ratios) {
    const bound = bounds.find((candidate) => candidate.name === name)
    const holds = bound !== undefined && median <= bound.atMost
    if (!holds) fallen++
    console.log(`${holds ? 'ok    ' : 'FALLEN'} ${name}: ${median.toFixed(3)} (${min.toFixed(3)}…${max.toFixed(3)}), bound ${bound ? bound.atMost.toFixed(3) : 'missing'}`)
  }
  return fallen
}
