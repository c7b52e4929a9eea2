'use strict'

// npm run docs:figures: writes the last column of test/faults/README.md, which lists the tests that name each row.
// test/house/fault-matrix.test.js checks it.

module.exports = { read, rowsOf, namedIn, testsOf, withoutTest }

const { readFileSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { filesBelow } = require('./files')

const ROOT = join(__dirname, '..')
const PAGE = join(ROOT, 'test', 'faults', 'README.md')
const NO_TEST = '## What no test here can show'
const NAME = /\b[TMLKAFPS]\d\d\b/g
const RANGE = /\b([TMLKAFPS])(\d\d)–\1(\d\d)\b/g
const CODE = /\.(?:js|mjs|cjs)$/

if (require.main === module) writeFileSync(PAGE, withTests(read(), namedIn('test')))

function read () {
  return readFileSync(PAGE, 'utf8')
}

/** The names of the matrix's rows. */
function rowsOf (page) {
  return [...page.matchAll(/^\| ([TMLKAFPS]\d\d) \|/gm)].map(([, row]) => row)
}

/** [row, the files in its last column] */
function testsOf (page) {
  return [...page.matchAll(/^\| ([TMLKAFPS]\d\d) \|.*\|([^|]*)\|$/gm)]
    .map(([, row, cell]) => [row, [...cell.matchAll(/`([^`]+)`/g)].map(([, file]) => file)])
}

/** The rows that, according to the page, no test can show. */
function withoutTest (page) {
  const table = page.split(NO_TEST)[1].match(/^\| [A-Z]\d\d.*/gm)
  return new Set(table.flatMap((line) => namesIn(line.split('|')[1])))
}

/** Row → the files in a folder whose comments name it, relative to the folder. */
function namedIn (folder) {
  const named = new Map()
  for (const file of filesBelow(join(ROOT, folder)).map((name) => name.replaceAll('\\', '/'))) {
    if (!CODE.test(file) || file.endsWith('matrix.test.js')) continue
    const comments = readFileSync(join(ROOT, folder, file), 'utf8').match(/^ *\/\/.*/gm) ?? []
    for (const row of new Set(comments.flatMap(namesIn))) named.set(row, [...named.get(row) ?? [], file])
  }
  return named
}

function withTests (page, named) {
  const none = withoutTest(page)
  return page.replace(/^(\| ([TMLKAFPS]\d\d) \|.*\|.*\|)[^|]*\|$/gm, (line, start, row) => {
    const files = none.has(row) ? [] : named.get(row) ?? []
    return `${start} ${files.length > 0 ? files.map((file) => `\`${file}\``).join(', ') : 'none'} |`
  })
}

// 'S01–S09, T12' names ten rows.
function namesIn (text) {
  const names = text.match(NAME) ?? []
  for (const [, letter, from, to] of text.matchAll(RANGE)) {
    for (let i = Number(from); i <= Number(to); i++) names.push(letter + String(i).padStart(2, '0'))
  }
  return names
}
