'use strict'

// npm run bench:ci: fails when a request takes more instructions than was last agreed on, when V8 gives up more functions,
// and when a span is lost. Times are printed and judge nothing: they belong to the machine.
//
// A case that does not hold is counted again, twice at most, and judged by its lowest figures: what is dearer is so in every process.
// A lost span is lost.
//
// npm run bench:ci -- --update counts, writes bench/results/ci-bounds.json and publishes the rows with bench:instructions' own.

const path = require('node:path')
const { availableParallelism } = require('node:os')
const { chooseCases, guarded, HEADLINE_NODE } = require('./instructions/cases')
const { countCases, publish, QUICK } = require('./instructions')
const { examineCases } = require('./v8')
const { consoleRows } = require('./report/instructions-table')
const { describeMachine, describeCommit } = require('./run/machine')
const { readResults, writeResults } = require('./report/results-file')

// What one process of each case scatters by, and less than a change that somebody would want to know of.
const TOTAL_SHARE = 0.02
const COUNTED_SHARE = 0.03 // of the rows that are counted alone: one process of bare-fresh scatters by 2.1 %
const REAL_SHARE = 0.01 // of the real request; two processes of bare-real were seen to differ by 0.6 %
const OVER_INSTRUCTIONS = 300
const DEOPTIMISATIONS = 3
// Which functions V8 has compiled by the time it sees the collector's socket depends on how fast the machine is just then. The same
// code was seen to have 9 and 13 of them given up.
const ATTEMPTS = 3
const BOUNDS = 'ci-bounds'

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const update = process.argv.includes('--update')
  const bounds = readResults(BOUNDS)
  if (update) return writeBounds(await count(chooseCases(guarded())))
  let { figures } = await count(dearestFirst(judged(guarded()), bounds))
  for (let attempt = 2; attempt <= ATTEMPTS; attempt++) {
    const fallen = judge(figures, bounds).filter(({ holds, isFinal }) => !holds && !isFinal)
    if (fallen.length === 0) break
    for (const { sentence } of fallen) console.log(`counted again: ${sentence}`)
    const again = await count(judged([...new Set(fallen.map(({ name }) => name))]))
    figures = figures.map((figure) => lowest(figure, again.figures.find(({ name }) => name === figure.name)))
  }
  const verdicts = judge(figures, bounds)
  for (const { holds, sentence } of verdicts) console.log(`${holds ? 'ok    ' : 'FALLEN'} ${sentence}`)
  const fallen = verdicts.filter(({ holds }) => !holds).length
  console.log(`${verdicts.length - fallen} passed, ${fallen} failed`)
  if (fallen > 0) process.exitCode = 1
}

/** Without the baselines that are only published. */
function judged (names) {
  return chooseCases(names).filter(({ guard }) => guard !== false)
}

/** Two are counted at a time: a dear one that begins last would be waited for alone. */
function dearestFirst (cases, bounds) {
  const totalOf = ({ name }) => bounds?.figures?.find((figure) => figure.name === name)?.total ?? 0
  return cases.toSorted((a, b) => totalOf(b) - totalOf(a))
}

async function count (cases) {
  const counted = await countCases(cases, { node: HEADLINE_NODE, profile: QUICK, parallel: Math.min(2, availableParallelism()) })
  console.table(consoleRows(counted.rows))
  const examined = await examineCases(cases.filter(({ guard }) => guard === true), { node: HEADLINE_NODE, root: path.join(__dirname, '..') })
  const figures = counted.rows.map((row) => figuresOf(row, examined.find(({ name }) => name === row.name)))
  for (const { name, micros } of figures) if (micros !== null) console.log(`not judged: ${name} took ${micros.toFixed(2)} µs of CPU time a request`)
  return { counted, figures }
}

function lowest (figure, again) {
  if (again === undefined) return figure
  const low = { ...figure }
  for (const key of ['total', 'over', 'deoptimisations']) if (figure[key] !== null && again[key] !== null) low[key] = Math.min(figure[key], again[key])
  if (again.spans !== null && again.spans.created !== again.spans.delivered) low.spans = again.spans
  return low
}

// examined: undefined for a row that is counted alone
function figuresOf ({ name, total, over, spans }, examined) {
  const { bytes = null, micros = null } = examined ?? {}
  return { name, total: total.median, over: over?.median ?? null, deoptimisations: examined?.deoptimised.length ?? null, spans, bytes, micros }
}

function judge (figures, bounds) {
  return figures.flatMap((figure) => {
    const bound = bounds?.figures?.find(({ name }) => name === figure.name)
    if (bound === undefined) return [{ name: figure.name, holds: false, isFinal: true, sentence: `${figure.name}: no bound; npm run bench:ci -- --update` }]
    const { name, total, over, deoptimisations, spans } = figure
    const lost = spans === null ? [] : [noneLost(figure)]
    if (deoptimisations === null) return [atMost(name, 'instructions a request', total, bound.total * (1 + (/real/.test(name) ? REAL_SHARE : COUNTED_SHARE))), ...lost]
    return [
      atMost(name, 'instructions a request', total, bound.total * (1 + TOTAL_SHARE)),
      ...(over === null ? [] : [atMost(name, 'instructions over its baseline', over, bound.over + OVER_INSTRUCTIONS)]),
      atMost(name, 'deoptimisations', deoptimisations, bound.deoptimisations + DEOPTIMISATIONS),
      ...lost
    ]
  })
}

function atMost (name, what, value, bound) {
  return { name, holds: value <= bound, isFinal: false, sentence: `${name}: ${what}: ${Math.round(value)}, at most ${Math.round(bound)}` }
}

function noneLost ({ name, spans: { created, delivered } }) {
  return { name, holds: created === delivered, isFinal: true, sentence: `${name}: ${delivered} of ${created} spans delivered` }
}

function writeBounds ({ counted, figures }) {
  const { rows, ...provenance } = counted
  publish(counted)
  const names = judged(guarded()).map(({ name }) => name)
  const bounds = figures.filter(({ name }) => names.includes(name))
  console.error(`wrote ${writeResults(BOUNDS, { ...provenance, ...describeCommit(__dirname), machine: describeMachine(), figures: bounds })}`)
}
