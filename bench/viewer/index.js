'use strict'

// npm run bench -- viewer: what the viewer's promises come to on this machine. Writes bench/results/viewer.json and the table of
// docs/viewer.md; takes about two minutes. `-- --no-publish` prints only.
//
// The machine may be busy: what can be is measured as CPU time of the viewer's process, the rest as medians of many.

const { existsSync, readdirSync, statSync } = require('node:fs')
const path = require('node:path')
const { describeMachine, describeCommit, watchSteal } = require('../run/machine')
const { writeResults } = require('../report/results-file')
const { viewerTable } = require('../report/viewer-table')
const { measureStart } = require('./start')
const { measureSeen } = require('./seen')
const { measureIngest } = require('./ingest')
const { measureMemory } = require('./memory')
const { measureLargeTrace } = require('./large-trace')
const { measurePage } = require('./page')

const ROOT = path.join(__dirname, '../..')

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const machine = describeMachine()
  const steal = watchSteal()
  const figures = {}
  for (const [name, measure] of Object.entries({ start: measureStart, seen: measureSeen, ingest: measureIngest, memory: measureMemory, largeTrace: measureLargeTrace, sizes: measureSizes })) {
    console.error(`${name}…`)
    figures[name] = await measure()
    console.error(JSON.stringify(figures[name]))
  }
  const page = await measurePage().catch((error) => {
    console.error(`the page was not measured: ${error.message}`)
    return null
  })
  const result = { date: new Date().toISOString(), ...describeCommit(ROOT), machine, steal: steal(), node: process.version, ...figures }
  if (!process.argv.includes('--no-publish')) {
    console.error(`wrote ${writeResults('viewer', result)}`)
    if (page !== null) console.error(`wrote ${writeResults('viewer-page', page)}`)
    await require('../report/publish-viewer')()
  }
  console.log(viewerTable(result, page))
}

// What npm puts on the disk: the files of package.json's "files" and the one dependency.
async function measureSizes () {
  const { execFileSync } = require('node:child_process')
  const [packed] = Object.values(JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] })))
  const page = path.join(ROOT, 'viewer/page.html')
  return {
    packageBytes: packed.unpackedSize,
    viewerBytes: packed.files.filter((file) => file.path.startsWith('viewer/')).reduce((sum, { size }) => sum + size, 0),
    dependencyBytes: sizeOf(path.join(ROOT, 'node_modules/fastify-plugin')),
    pageBytes: existsSync(page) ? statSync(page).size : null
  }
}

function sizeOf (folder) {
  return readdirSync(folder, { withFileTypes: true })
    .reduce((sum, entry) => sum + (entry.isDirectory() ? sizeOf(path.join(folder, entry.name)) : statSync(path.join(folder, entry.name)).size), 0)
}
