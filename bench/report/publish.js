'use strict'

// npm run docs:figures: bench/results/*.json → the tables of README.md, bench/RESULTS.md and docs, and docs/overhead.svg. Nothing that
// is published is typed.
//
// A row whose commit is not in the history is refused, and nothing is written: no one could see what it measured. README.md is left as
// it is where a row of it is older than the files that run per request; a table elsewhere says in its caption that it is.
// `npm run bench:cost -- --list` has the commands that measure each anew.

const fs = require('node:fs')
const path = require('node:path')
const { readResults, writeResults, resultKinds } = require('./results-file')
const { replaceBetween } = require('./markdown')
const { overheadTable, startupTable, startupInstructionsTable, targetsTable, sizesTable, provenance } = require('./tables')
const { readmeTable, readmeRows, realTable, othersTable, answer, nodesTable, instructionsTable, stepsTable, deoptimisationsTable, tailTable, nextTickTable } = require('./cost-tables')
const { seedsTable } = require('./seeds-table')
const { seedsOf } = require('../targets')
const { callsTable } = require('./calls-table')
const { growthTables, growthShort } = require('./growth-tables')
const { faultsTable } = require('./faults-table')
const { microTable } = require('./micro-table')
const { logLinesTable } = require('./log-lines-table')
const { fieldTables } = require('./field-tables')
const { withLatest, historyTable } = require('./history')
const { rowsIn, unknownRows, isOfToday } = require('../run/code')
const drawChart = require('./chart')
const { cases, HEADLINE_NODE } = require('../cases')

const root = path.join(__dirname, '../..')

module.exports = { publish, resultsByName, hasAll, refusedRows, staleRows }

if (require.main === module) publish()

function publish () {
  const refused = refusedRows()
  if (refused === null) console.error('a shallow clone: whether the rows are of commits in the history is not known')
  else if (refused.length > 0) return fail('of commits that are not in the history', refused)
  const overhead = readResults('overhead')
  if (overhead) edit('bench/RESULTS.md', overheadSections(overhead))
  const startup = readResults('startup')
  if (startup) edit('bench/RESULTS.md', { 'bench:startup': startupTable(startup) })
  const startupInstructions = readResults('startup-instructions')
  if (startupInstructions) edit('bench/RESULTS.md', { 'bench:startup-instructions': startupInstructionsTable(startupInstructions) })
  publishCost()
  const results = resultsByName()
  edit('bench/RESULTS.md', { 'bench:targets': targetsTable(results) })
  const calls = readResults('calls')
  if (calls) edit('bench/RESULTS.md', { 'bench:calls': callsTable(calls) })
  const growth = readResults('growth')
  if (growth) {
    edit('bench/RESULTS.md', { 'bench:growth': growthTables(growth) })
    edit('docs/overhead.md', { 'bench:growth-short': growthShort(growth) })
  }
  const micro = readResults('micro')
  if (micro) edit('docs/architecture.md', { 'bench:micro': microTable(micro) })
  const logLines = readResults('log-lines')
  if (logLines) edit('docs/logs.md', { 'bench:log-lines': logLinesTable(logLines) })
  const faults = readResults('faults')
  if (faults) edit('bench/RESULTS.md', { 'bench:faults': faultsTable(faults) })
  require('./publish-viewer')()
  const field = readResults('field')
  if (field) edit('bench/RESULTS.md', { 'bench:field': fieldTables(field) })
  const { seeds } = results
  if (seeds) edit('bench/RESULTS.md', { 'bench:seeds': seeds.tables.map(seedsTable).join('\n\n') })
  if (!hasAll(results)) return
  edit('docs/overhead.md', { 'bench:answer': answer(results), 'bench:real': realTable(results.instructions), 'bench:others': othersTable(results.instructions), 'bench:nodes': nodesTable(seeds) })
  fs.writeFileSync(path.join(root, 'docs/overhead.svg'), drawChart(seedsOf(seeds, 'hello', 10, HEADLINE_NODE)))
  const stale = staleRows(results)
  if (stale.length > 0) return fail('in README.md and older than the files that run per request', stale)
  edit('README.md', { bench: readmeTable(results) })
}

function fail (what, rows) {
  console.error(`${rows.length} rows are ${what}:\n  ${rows.join('\n  ')}\nnpm run bench:cost -- --list has the commands that measure them anew; --readme runs those for the README`)
  process.exitCode = 1
}

/** → what names the rows of all results files whose commit is not in the history; null in a shallow clone. */
function refusedRows () {
  const rows = resultKinds().flatMap((kind) => rowsIn(kind, readResults(kind)).map((found) => ({ ...found, kind })))
  return unknownRows(rows)?.map(({ kind, name, commit }) => `bench/results/${kind}.json: ${name}, ${commit?.slice(0, 7)}`) ?? null
}

/** → what names the rows of the README that were measured before hot files changed. */
function staleRows (results) {
  return readmeRows(results).filter((found) => !isOfToday(found)).map(({ name, commit }) => `${name}${commit === undefined ? '' : `, ${commit.slice(0, 7)}`}`)
}

function publishCost () {
  const instructions = readResults('instructions')
  if (instructions) edit('bench/RESULTS.md', { 'bench:instructions': instructionsTable(instructions), 'bench:steps': stepsTable(instructions, HEADLINE_NODE) })
  if (instructions) publishHistory(instructions)
  const v8 = readResults('v8')
  if (v8) edit('bench/RESULTS.md', { 'bench:v8': deoptimisationsTable(v8) })
  const tail = readResults('tail')
  if (tail) edit('bench/RESULTS.md', { 'bench:tail': tailTable(tail) })
  const nextTick = readResults('next-tick')
  if (nextTick) edit('bench/upstream/README.md', { 'bench:next-tick': nextTickTable(nextTick) })
}

function publishHistory (instructions) {
  const history = withLatest(readResults('history') ?? [], instructions)
  writeResults('history', history)
  edit('bench/RESULTS.md', { 'bench:history': historyTable(history) })
}

function overheadSections (result) {
  const published = cases.filter(({ sets }) => sets.includes('publish'))
  const names = (choose) => published.filter(choose).map(({ name }) => name)
  return {
    'bench:provenance': provenance(result),
    'bench:hello': overheadTable(result, names(isHello)),
    'bench:more': overheadTable(result, names((testCase) => !isHello(testCase) && !testCase.load)),
    'bench:rate': overheadTable(result, names(({ load }) => load?.rate)),
    'bench:sizes': sizesTable(result)
  }
}

function resultsByName () {
  const kinds = { instructions: 'instructions', seeds: 'seeds', v8: 'v8', tail: 'tail', startup: 'startup', startupInstructions: 'startup-instructions', overhead: 'overhead' }
  return Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, readResults(kind)]))
}

// A machine that has run only some of the benches leaves the short page as it is.
function hasAll (results) {
  return Object.values(results).every((result) => result !== null) && [10, 1].every((pipelining) => seedsOf(results.seeds, 'hello', pipelining, HEADLINE_NODE) !== undefined)
}

function isHello ({ against = 'bare' }) {
  return against === 'bare'
}

function edit (name, sections) {
  const file = path.join(root, name)
  if (!fs.existsSync(file)) return console.error(`${name} does not exist yet, its tables are left out`)
  let text = fs.readFileSync(file, 'utf8')
  for (const [section, content] of Object.entries(sections)) text = replaceBetween(text, section, content)
  fs.writeFileSync(file, text)
  console.error(`wrote ${name}`)
}
