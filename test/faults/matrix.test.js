'use strict'

// Every row of the fault matrix is shown by a test that names it, or docs/reliability.md says why not.

const { test } = require('tap')
const fs = require('node:fs')
const path = require('node:path')

const ROWS = { T: 35, M: 12, L: 18, K: 6, A: 10, F: 15, P: 12, S: 16 }
const LETTERS = Object.keys(ROWS).join('')
const ROW = new RegExp(`\\b[${LETTERS}]\\d\\d\\b`, 'g')
const RANGE = new RegExp(`\\b([${LETTERS}])(\\d\\d)–\\1(\\d\\d)\\b`, 'g')
const ROOT = path.join(__dirname, '../..')

test('no row is forgotten', async (t) => {
  const named = new Set()
  for (const file of fs.readdirSync(path.join(ROOT, 'test'), { recursive: true })) {
    if (!file.endsWith('.js') || file.includes('node_modules') || file.endsWith('matrix.test.js')) continue
    for (const comment of fs.readFileSync(path.join(ROOT, 'test', file), 'utf8').match(/^ *\/\/.*/gm) ?? []) {
      for (const row of rowsIn(comment)) named.add(row)
    }
  }
  const table = fs.readFileSync(path.join(ROOT, 'docs/reliability.md'), 'utf8').split('## How it is tested')[1]
  for (const line of table.match(/^\| [A-Z]\d\d.*/gm)) rowsIn(line.split('|')[1]).forEach((row) => named.add(row))
  for (const [letter, count] of Object.entries(ROWS)) {
    for (let i = 1; i <= count; i++) t.ok(named.has(rowOf(letter, i)), rowOf(letter, i))
  }
})

// 'S01–S09, T12' names ten rows.
function rowsIn (text) {
  const rows = text.match(ROW) ?? []
  for (const [, letter, from, to] of text.matchAll(RANGE)) {
    for (let i = Number(from); i <= Number(to); i++) rows.push(rowOf(letter, i))
  }
  return rows
}

function rowOf (letter, number) {
  return letter + String(number).padStart(2, '0')
}
