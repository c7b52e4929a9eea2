'use strict'

// bench/results/viewer.json and viewer-page.json → the table of docs/viewer.md. Nothing that is published is typed.

const fs = require('node:fs')
const path = require('node:path')
const { readResults } = require('./results-file')
const { replaceBetween } = require('./markdown')
const { viewerTable } = require('./viewer-table')

const PAGE = path.join(__dirname, '../../docs/viewer.md')

module.exports = publishViewer

function publishViewer () {
  const result = readResults('viewer')
  if (result === null) return
  fs.writeFileSync(PAGE, replaceBetween(fs.readFileSync(PAGE, 'utf8'), 'bench:viewer', viewerTable(result, readResults('viewer-page'))))
  console.error('wrote docs/viewer.md')
}
