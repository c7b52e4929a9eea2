'use strict'

// Each row of the fault matrix, test/faults/README.md, has a test that names it. Otherwise the page gives the reason.

const { test } = require('tap')
const { namedIn, read, rowsOf, testsOf, withoutTest } = require('../../scripts/fault-matrix')

const page = read()
const rows = rowsOf(page)
const tests = namedIn('test')

test('every row has a test, or a reason for having none', async (t) => {
  t.equal(rows.length, new Set(rows).size, 'each row once')
  const none = withoutTest(page)
  for (const row of rows) t.not(tests.has(row), none.has(row), row)
})

test('the page names the tests that name a row: npm run docs:figures writes them', async (t) => {
  for (const [row, files] of testsOf(page)) {
    for (const file of files) t.ok(tests.get(row)?.includes(file), `${row}: ${file}`)
    t.not(files.length > 0, withoutTest(page).has(row), `${row} has a test on the page, or a reason for having none`)
  }
})

test('tests, benches and scripts name only rows that exist', async (t) => {
  for (const folder of ['test', 'bench', 'scripts']) {
    for (const [row, files] of namedIn(folder)) t.ok(rows.includes(row), `${row} in ${files}`)
  }
  const { cases } = require('../../bench/faults/cases')
  const measured = cases.flatMap(({ row }) => row ?? [])
  t.ok(measured.length > 0)
  for (const row of measured) t.ok(rows.includes(row), row)
})
