'use strict'

// npm run bench:ci fails when a request takes more instructions than the stored bounds allow, when V8 deoptimises more functions, or
// when a span is lost. Each case runs in one process that is warmed up only until two processes differ little, so these counts are
// not for publication.
//
// Everything is counted with the very Node that the bounds were counted with: a hello world without light-trace took 12 % more
// instructions on Node 24.22.3 than on 24.21.0.
//
// A case that fails is counted again, at most twice, and judged by its lowest figures, because a real regression shows in every
// process. A lost span always fails.
//
//   --update          writes the counts to bench/results/ci-bounds.json, case by case. Without --case, counts with the newest Node of
//                     the headline's major
//   --case pipelined  only this case and its baseline; can be repeated

const { availableParallelism } = require('node:os')
const { parseArgs } = require('node:util')
const { chooseCases, guarded, HEADLINE_NODE } = require('./instructions/cases')
const { countCases, QUICK } = require('./instructions')
const { consoleRows } = require('./report/instructions-table')
const { readResults, writeResults } = require('./report/results-file')

// More than the variation between processes of one case, and less than a change worth noticing.
const TOTAL_SHARE = 0.02
const COUNTED_SHARE = 0.03 // for rows that are only counted: processes of bare-fresh vary by 2.1 %
const REAL_SHARE = 0.01 // for the real request: two processes of bare-real differed by 0.6 %
const OVER_INSTRUCTIONS = 300
const DEOPTIMISATIONS = 3
// The speed of the machine decides which functions V8 has compiled by the time it meets the collector's socket. The same code had 9
// deoptimisations in one run and 13 in another.
const ATTEMPTS = 3
const BOUNDS = 'ci-bounds'
// V8 has compiled nearly everything of a hello world after about 14,000 requests: a window of 4,000 costs 7 % more after 10,000
// requests than after 14,000, and 1 % more after 20,000 than after 28,000. A window contains about two young-generation collections.
// Two windows differ by half a percent, so windows are twice as long where the difference to a baseline is judged. An expensive
// request needs fewer repetitions to get V8 to the same state.
const PROFILE = { ...QUICK, requests: 0, windows: 1 } // each case sets its own number of requests
const COUNT = { warmUp: 16_000, requests: 4000 }
const COUNT_BOTH = { warmUp: 20_000, requests: 8000 }
const DEAR = { real: { warmUp: 8000, requests: 2000 }, throws: { warmUp: 6000, requests: 2000 }, fresh: { warmUp: 8000, requests: 3000 } }

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const { values: { update, case: names } } = parseArgs({ options: { update: { type: 'boolean', default: false }, case: { type: 'string', multiple: true } } })
  const { node: runtime, figures: bounds } = readResults(BOUNDS) ?? {}
  const ofBounds = runtime?.slice('v'.length)
  if (update) return count(judged(names), names === undefined ? HEADLINE_NODE : ofBounds, writeBounds)
  const figures = await count(dearestFirst(judged(names), bounds), ofBounds)
  for (let attempt = 2; attempt <= ATTEMPTS; attempt++) {
    const fallen = judge(figures, bounds).filter(({ holds, isFinal }) => !holds && !isFinal)
    if (fallen.length === 0) break
    for (const { sentence } of fallen) console.log(`counted again: ${sentence}`)
    const again = await count(judged([...new Set(fallen.map(({ name }) => name))]), ofBounds)
    for (const figure of again) lower(figures.find(({ name }) => name === figure.name), figure)
  }
  const verdicts = judge(figures, bounds)
  for (const { holds, sentence } of verdicts) console.log(`${holds ? 'ok    ' : 'FAILED'} ${sentence}`)
  const fallen = verdicts.filter(({ holds }) => !holds).length
  console.log(`${verdicts.length - fallen} passed, ${fallen} failed`)
  if (fallen > 0) process.exitCode = 1
}

/** Leaves out the baselines that are only published. */
function judged (names = guarded()) {
  return chooseCases(names).filter(({ guard }) => guard !== false).map((testCase) => ({ ...testCase, ...DEAR[testCase.name] ?? (testCase.guard === true ? COUNT_BOTH : COUNT) }))
}

/** Two cases are counted at a time. An expensive one that starts last would run alone while everything else waits. */
function dearestFirst (cases, bounds) {
  const secondsOf = ({ name }) => bounds.find((figure) => figure.name === name)?.seconds ?? 0
  return cases.toSorted((a, b) => secondsOf(b) - secondsOf(a))
}

async function count (cases, node, onCase = () => {}) {
  const { rows } = await countCases(cases, { node, profile: PROFILE, parallel: Math.min(2, availableParallelism()), isTraced: ({ guard }) => guard === true, onCase: (row, sofar) => onCase(sofar()) })
  console.table(consoleRows(rows))
  return rows.map(figureOf)
}

function figureOf ({ name, total, over, deoptimisations, spans, seconds }) {
  return { name, total: total.median, over: over?.median ?? null, deoptimisations, spans, seconds }
}

function lower (figure, again) {
  for (const key of ['total', 'over', 'deoptimisations']) if (figure[key] !== null && again[key] !== null) figure[key] = Math.min(figure[key], again[key])
  if (again.spans !== null && again.spans.created !== again.spans.delivered) figure.spans = again.spans
}

function judge (figures, bounds) {
  return figures.flatMap((figure) => {
    const bound = bounds.find(({ name }) => name === figure.name)
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

function writeBounds ({ date, commit, node, rows }) {
  const counted = rows.map(figureOf).map(({ name, total, over, deoptimisations, seconds }) => ({ name, total, ...over !== null && { over }, ...deoptimisations !== null && { deoptimisations }, seconds }))
  const earlier = readResults(BOUNDS)?.figures ?? []
  const figures = guarded().flatMap((name) => [...counted, ...earlier].find((figure) => figure.name === name) ?? [])
  console.error(`wrote ${writeResults(BOUNDS, { date, commit, node, figures })}`)
}
