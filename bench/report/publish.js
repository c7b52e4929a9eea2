'use strict'

// npm run docs: bench/results/*.json → the README's table, the tables of bench/RESULTS.md, docs/overhead.md and
// docs/overhead.svg. Nothing that is published is typed.

const fs = require('node:fs')
const path = require('node:path')
const { readResults, writeResults } = require('./results-file')
const { replaceBetween } = require('./markdown')
const { pairedTable, overheadTable, startupTable, startupInstructionsTable, targetsTable, sizesTable, provenance } = require('./tables')
const { readmeTable, realTable, othersTable, answer, summaryTable, instructionsTable, stepsTable, deoptimisationsTable, settledTable, tailTable, warmUpTable, nextTickTable } = require('./cost-tables')
const { callsTable } = require('./calls-table')
const { growthTables, growthShort } = require('./growth-tables')
const { faultsTable } = require('./faults-table')
const { microTable } = require('./micro-table')
const { logLinesTable } = require('./log-lines-table')
const { fieldTables } = require('./field-tables')
const { withLatest, historyTable } = require('./history')
const drawChart = require('./chart')
const { cases, HEADLINE_NODE } = require('../cases')

const root = path.join(__dirname, '../..')

module.exports = publish
module.exports.publishMicro = publishMicro
module.exports.resultsByName = resultsByName

if (require.main === module) publish()

function publish () {
  const overhead = readResults('overhead')
  const startup = readResults('startup')
  const field = readResults('field')
  const paired = readResults('paired')
  if (!overhead && !field) throw new Error('there are no results yet: npm run bench -- --publish')
  if (overhead) {
    edit('bench/RESULTS.md', overheadSections(overhead))
  }
  if (startup) edit('bench/RESULTS.md', { 'bench:startup': startupTable(startup) })
  const startupInstructions = readResults('startup-instructions')
  if (startupInstructions) edit('bench/RESULTS.md', { 'bench:startup-instructions': startupInstructionsTable(startupInstructions) })
  if (paired) {
    edit('bench/RESULTS.md', { 'bench:paired': pairedTable(paired) })
    fs.writeFileSync(path.join(root, 'docs/overhead.svg'), drawChart(paired))
  }
  publishCost()
  const results = resultsByName()
  edit('bench/RESULTS.md', { 'bench:targets': targetsTable(results) })
  if (hasAll(results)) {
    edit('README.md', { bench: readmeTable(results) })
    edit('docs/overhead.md', { 'bench:answer': answer(results), 'bench:real': realTable(results.instructions), 'bench:others': othersTable(results.instructions), 'bench:summary': summaryTable(results.paired, results.instructions) })
  }
  const calls = readResults('calls')
  if (calls) edit('bench/RESULTS.md', { 'bench:calls': callsTable(calls) })
  const growth = readResults('growth')
  if (growth) {
    edit('bench/RESULTS.md', { 'bench:growth': growthTables(growth) })
    edit('docs/overhead.md', { 'bench:growth-short': growthShort(growth) })
  }
  publishMicro()
  const logLines = readResults('log-lines')
  if (logLines) edit('docs/logs.md', { 'bench:log-lines': logLinesTable(logLines) })
  const faults = readResults('faults')
  if (faults) edit('bench/RESULTS.md', { 'bench:faults': faultsTable(faults) })
  require('./publish-viewer')()
  if (field) edit('bench/RESULTS.md', { 'bench:field': fieldTables(field) })
}

function publishMicro () {
  const micro = readResults('micro')
  if (micro) edit('docs/architecture.md', { 'bench:micro': microTable(micro) })
}

function publishCost () {
  const instructions = readResults('instructions')
  if (instructions) edit('bench/RESULTS.md', { 'bench:instructions': instructionsTable(instructions), 'bench:steps': stepsTable(instructions, HEADLINE_NODE) })
  if (instructions) publishHistory(instructions)
  const v8 = readResults('v8')
  if (v8) edit('bench/RESULTS.md', { 'bench:v8': deoptimisationsTable(v8) })
  for (const kind of ['settled', 'settled-busy', 'settled-pipelined', 'settled-semi-space']) {
    const settled = readResults(kind)
    if (settled) edit('bench/RESULTS.md', { [`bench:${kind}`]: settledTable(settled, kind) })
  }
  const tail = readResults('tail')
  if (tail) edit('bench/RESULTS.md', { 'bench:tail': tailTable(tail) })
  const warmUp = readResults('warm-up')
  if (warmUp) edit('bench/RESULTS.md', { 'bench:warm-up': warmUpTable(warmUp) })
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
    'bench:more': overheadTable(result, names((testCase) => !isHello(testCase) && !testCase.load && !testCase.node)),
    'bench:pipelined': overheadTable(result, names(({ load }) => load?.pipelining)),
    'bench:rate': overheadTable(result, names(({ load }) => load?.rate)),
    'bench:nodes': overheadTable(result, names(({ node }) => node)),
    'bench:sizes': sizesTable(result)
  }
}

function resultsByName () {
  const kinds = { instructions: 'instructions', settled: 'settled', busy: 'settled-busy', pipelined: 'settled-pipelined', semiSpace: 'settled-semi-space', v8: 'v8', tail: 'tail', startup: 'startup', startupInstructions: 'startup-instructions', paired: 'paired', overhead: 'overhead' }
  return Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, readResults(kind)]))
}

// A machine that has run only some of the benches leaves the short page as it is.
function hasAll (results) {
  return Object.values(results).every((result) => result !== null)
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
