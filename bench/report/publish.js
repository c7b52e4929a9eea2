'use strict'

// npm run bench:docs: bench/results/*.json → the README's table, the tables of docs/overhead.md and
// docs/overhead.svg. Nothing that is published is typed.

const fs = require('node:fs')
const path = require('node:path')
const { readResults } = require('./results-file')
const { replaceBetween } = require('./markdown')
const { readmeTable, pairedTable, profileTable, overheadTable, startupTable, targetsTable, sizesTable, provenance } = require('./tables')
const { callsTable } = require('./calls-table')
const { faultsTable } = require('./faults-table')
const { microTable } = require('./micro-table')
const { fieldTables } = require('./field-tables')
const drawChart = require('./chart')
const { cases } = require('../cases')

const root = path.join(__dirname, '../..')

module.exports = publish
module.exports.publishMicro = publishMicro

if (require.main === module) {
  publish().catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
}

async function publish () {
  const overhead = readResults('overhead')
  const startup = readResults('startup')
  const field = readResults('field')
  const paired = readResults('paired')
  if (!overhead && !field) throw new Error('there are no results yet: npm run bench -- --publish')
  if (overhead) {
    edit('README.md', { bench: readmeTable(overhead, paired) })
    edit('docs/overhead.md', overheadSections({ ...overhead, startup: startup?.startup }, paired))
    fs.writeFileSync(path.join(root, 'docs/overhead.svg'), await drawChart(overhead))
  }
  if (startup) edit('docs/overhead.md', { 'bench:startup': startupTable(startup) })
  if (paired) edit('docs/overhead.md', { 'bench:paired': pairedTable(paired) })
  const profile = readResults('profile')
  if (profile) edit('docs/overhead.md', { 'bench:profile': profileTable(profile) })
  const calls = readResults('calls')
  if (calls) edit('docs/overhead.md', { 'bench:calls': callsTable(calls) })
  publishMicro()
  const faults = readResults('faults')
  if (faults) edit('docs/reliability.md', { 'bench:faults': faultsTable(faults) })
  require('./publish-viewer')()
  if (field) edit('docs/overhead.md', { 'bench:field': fieldTables(field) })
}

function publishMicro () {
  const micro = readResults('micro')
  if (micro) edit('docs/architecture.md', { 'bench:micro': microTable(micro) })
}

function overheadSections (result, paired) {
  const published = cases.filter(({ sets }) => sets.includes('publish'))
  const names = (choose) => published.filter(choose).map(({ name }) => name)
  return {
    'bench:provenance': provenance(result),
    'bench:targets': targetsTable({ overhead: result, paired }),
    'bench:hello': overheadTable(result, names(isHello)),
    'bench:more': overheadTable(result, names((testCase) => !isHello(testCase) && !testCase.load && !testCase.node)),
    'bench:pipelined': overheadTable(result, names(({ load }) => load?.pipelining)),
    'bench:rate': overheadTable(result, names(({ load }) => load?.rate)),
    'bench:nodes': overheadTable(result, names(({ node }) => node)),
    'bench:sizes': sizesTable(result)
  }
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
