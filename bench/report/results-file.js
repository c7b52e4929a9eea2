'use strict'

// bench/results/<kind>.json: the last published run of each kind, in the form of ./stored.js. Earlier runs are in git.

const fs = require('node:fs')
const path = require('node:path')
const { stored } = require('./stored')

const FOLDER = path.join(__dirname, '../results')
const NUMBERS = /\[\s+((?:-?[\d.e+-]+,?\s+)+)\]/g

// Not measurements: the bounds of CI.
const NO_RESULTS = ['ci-bounds']

module.exports = { writeResults, readResults, resultKinds }

function writeResults (kind, result) {
  const file = path.join(FOLDER, `${kind}.json`)
  fs.mkdirSync(FOLDER, { recursive: true })
  const text = JSON.stringify(stored(kind, result), shorten, 1)
  fs.writeFileSync(file, text.replace(NUMBERS, (all, numbers) => `[${numbers.trim().replace(/\s+/g, ' ')}]`) + '\n')
  return file
}

// → null if it does not exist yet
function readResults (kind) {
  const file = path.join(FOLDER, `${kind}.json`)
  return fs.existsSync(file) ? stored(kind, JSON.parse(fs.readFileSync(file, 'utf8'))) : null
}

// → the names of all files with measurements
function resultKinds () {
  return fs.readdirSync(FOLDER).map((name) => path.basename(name, '.json')).filter((kind) => !NO_RESULTS.includes(kind))
}

// Beyond five digits is noise, which would make the file's diffs unreadable.
function shorten (key, value) {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value
}
