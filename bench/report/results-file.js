'use strict'

// bench/results/<kind>.json: the last published run of each kind; git keeps the earlier ones.

const fs = require('node:fs')
const path = require('node:path')

const FOLDER = path.join(__dirname, '../results')

// What is no measurement of one code: the bounds of CI, and the log of what was published.
const NO_RESULTS = ['ci-bounds', 'history']

module.exports = { writeResults, readResults, resultKinds }

function writeResults (kind, result) {
  const file = path.join(FOLDER, `${kind}.json`)
  fs.mkdirSync(FOLDER, { recursive: true })
  fs.writeFileSync(file, JSON.stringify(result, shorten, 1) + '\n')
  return file
}

// → null where there is none yet
function readResults (kind) {
  const file = path.join(FOLDER, `${kind}.json`)
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : null
}

// → the names of all files that have measurements
function resultKinds () {
  return fs.readdirSync(FOLDER).map((name) => path.basename(name, '.json')).filter((kind) => !NO_RESULTS.includes(kind))
}

// More digits than five are noise, and make the file's diffs unreadable.
function shorten (key, value) {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value
}
