'use strict'

// npm run docs:figures: writes the tables of README.md, bench and docs, and docs/overhead.svg, from bench/results/*.json. No published
// figure is typed by hand.
//
// A row whose commit is not in the history is refused, and nothing is written, because no one could see which code it measured.
// README.md stays unchanged if one of its rows is older than the files that run per request. Other tables mention that in their caption.
// `npm run bench:cost -- --list` lists the commands that measure each row again.

const fs = require('node:fs')
const path = require('node:path')
const { readResults, resultKinds } = require('./results-file')
const { replaceBetween } = require('./markdown')
const { startupTable, targetsTable, sizesTable } = require('./tables')
const { readmeTable, readmeRows, realTable, othersTable, answer, addedTable, nodesTable, instructionsTable, stepsTable, deoptimisationsTable, nextTickTable } = require('./cost-tables')
const { seedsTable } = require('./seeds-table')
const { seedsOf } = require('../targets')
const { growthTables, growthShort } = require('./growth-tables')
const { faultsTable } = require('./faults-table')
const { microTable } = require('./micro-table')
const { logLinesTable } = require('./log-lines-table')
const { viewerTable } = require('./viewer-table')
const { rowsIn, unknownRows, isOfToday } = require('../run/code')
const drawChart = require('./chart')
const { HEADLINE_NODE } = require('../cases')

const root = path.join(__dirname, '../..')

// [page, section, name of the results file, function that makes the table]
const SECTIONS = [
  ['bench/RESULTS.md', 'bench:seeds', 'seeds', ({ tables }) => tables.filter(({ node }) => node.startsWith(`v${HEADLINE_NODE}.`)).map(seedsTable).join('\n\n')],
  ['bench/RESULTS.md', 'bench:instructions', 'instructions', instructionsTable],
  ['bench/RESULTS.md', 'bench:steps', 'instructions', (instructions) => stepsTable(instructions, HEADLINE_NODE)],
  ['bench/RESULTS.md', 'bench:startup', 'startup-instructions', startupTable],
  ['bench/RESULTS.md', 'bench:sizes', 'sizes', sizesTable],
  ['bench/RESULTS.md', 'bench:faults', 'faults', faultsTable],
  ['bench/RESULTS.md', 'bench:v8', 'v8', deoptimisationsTable],
  ['bench/RESULTS.md', 'bench:growth', 'growth', growthTables],
  ['bench/upstream/README.md', 'bench:next-tick', 'next-tick', nextTickTable],
  ['bench/REQUESTS.md', 'bench:growth-short', 'growth', growthShort],
  ['docs/architecture.md', 'bench:micro', 'micro', microTable],
  ['bench/REQUESTS.md', 'bench:log-lines', 'log-lines', logLinesTable],
  ['bench/RESULTS.md', 'bench:viewer', 'viewer', (viewer) => viewerTable(viewer, readResults('viewer-page'))]
]

module.exports = { publish, resultsByName, hasAll, refusedRows, staleRows }

if (require.main === module) publish()

function publish () {
  const refused = refusedRows()
  if (refused === null) console.error('a shallow clone: the commits of the rows cannot be checked')
  else if (refused.length > 0) return fail('from commits that are not in the history', refused)
  for (const [page, section, kind, tableOf] of SECTIONS) {
    const result = readResults(kind)
    if (result !== null) edit(page, { [section]: tableOf(result) })
  }
  const results = resultsByName()
  edit('bench/RESULTS.md', { 'bench:targets': targetsTable(results) })
  if (!hasAll(results)) return
  const { seeds } = results
  edit('bench/REQUESTS.md', { 'bench:real': realTable(results.instructions), 'bench:others': othersTable(results.instructions), 'bench:nodes': nodesTable(seeds) })
  edit('docs/overhead.md', { 'bench:answer': answer(results), 'bench:added': addedTable(results), 'bench:nodes': nodesTable(seeds, true) })
  fs.writeFileSync(path.join(root, 'docs/overhead.svg'), drawChart(seedsOf(seeds, 'hello', 10, HEADLINE_NODE)))
  const stale = staleRows(results)
  if (stale.length > 0) return fail('in README.md but older than the files that run per request', stale)
  edit('README.md', { bench: readmeTable(results) })
}

function fail (what, rows) {
  console.error(`${rows.length} rows are ${what}:\n  ${rows.join('\n  ')}\nnpm run bench:cost -- --list lists the commands that measure them again; --readme runs those for the README`)
  process.exitCode = 1
}

/** → descriptions of the rows, in all results files, whose commit is not in the history; null in a shallow clone. */
function refusedRows () {
  const rows = resultKinds().flatMap((kind) => rowsIn(kind, readResults(kind)).map((found) => ({ ...found, kind })))
  return unknownRows(rows)?.map(({ kind, name, commit }) => `bench/results/${kind}.json: ${name}, ${commit?.slice(0, 7)}`) ?? null
}

/** → descriptions of the README's rows that were measured before hot files changed. */
function staleRows (results) {
  return readmeRows(results).filter((found) => !isOfToday(found)).map(({ name, commit }) => `${name}${commit === undefined ? '' : `, ${commit.slice(0, 7)}`}`)
}

function resultsByName () {
  const kinds = { instructions: 'instructions', seeds: 'seeds', v8: 'v8', startupInstructions: 'startup-instructions', sizes: 'sizes', growth: 'growth', logLines: 'log-lines' }
  return Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, readResults(kind)]))
}

// On a machine that has run only some of the benches, the short page stays unchanged.
function hasAll (results) {
  return Object.values(results).every((result) => result !== null) && [['hello', 10], ['hello', 1], ['checkout', 10]].every(([route, pipelining]) => seedsOf(results.seeds, route, pipelining, HEADLINE_NODE) !== undefined)
}

function edit (name, sections) {
  const file = path.join(root, name)
  if (!fs.existsSync(file)) return console.error(`${name} does not exist, its tables are skipped`)
  let text = fs.readFileSync(file, 'utf8')
  for (const [section, content] of Object.entries(sections)) text = replaceBetween(text, section, content)
  fs.writeFileSync(file, text)
  console.error(`wrote ${name}`)
}
