'use strict'

// npm run docs:tables: writes the tables of docs/errors.md from lib/runtime/codes.json. test/house/docs.test.js checks them.

module.exports = { codeTables }

const { readFileSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { replaceBetween, table } = require('../bench/report/markdown')
const codes = require('../lib/runtime/codes.json')

if (require.main === module) {
  const file = join(__dirname, '../docs/errors.md')
  let text = readFileSync(file, 'utf8')
  for (const [section, content] of Object.entries(codeTables())) text = replaceBetween(text, section, content)
  writeFileSync(file, text)
}

/** The tables of the page, by section. */
function codeTables () {
  const rows = Object.entries(codes).map(([code, row]) => ({ code, ...row }))
  const code = ['code', (row) => `\`${row.code}\``]
  const when = ['when', (row) => row.when]
  const often = ['how often', (row) => row.per === undefined ? row.often : `${row.often} per ${row.per}`]
  const then = ['what happens, and what to do', (row) => row.then]
  return {
    'codes:thrown': table([code, when], rows.filter((row) => row.often === 'thrown')),
    'codes:logged': table([code, when, often, then], rows.filter((row) => row.often !== 'thrown'))
  }
}
