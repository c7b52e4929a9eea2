'use strict'

// Which cases a run measures: a set or named ones, their baselines with them, without those that
// cannot run here.

const fs = require('node:fs')
const path = require('node:path')
const { HEADLINE_NODE } = require('./cases')

const root = process.env.LIGHT_TRACE_ROOT ?? path.join(__dirname, '..')

module.exports = chooseCases

// table: all cases; names: those wanted, over set
function chooseCases (table, { names, set }) {
  const wanted = names ? names.map((name) => caseNamed(table, name)) : table.filter(({ sets }) => sets.includes(set))
  return withBaselines(table, wanted).filter((testCase) => {
    const missing = whyNot(testCase)
    if (missing) console.error(`skipped ${testCase.name}: ${missing}`)
    return !missing
  })
}

function caseNamed (table, name) {
  const found = table.find((testCase) => testCase.name === name)
  if (!found) throw new Error(`no case is called "${name}": --list shows them`)
  return found
}

function withBaselines (table, wanted) {
  const needed = new Set()
  for (const { against = 'bare', also } of wanted) {
    needed.add(caseNamed(table, against))
    if (also) needed.add(caseNamed(table, also))
  }
  for (const testCase of wanted) needed.add(testCase)
  return [...needed]
}

function whyNot ({ setup, minNode = 0, node = HEADLINE_NODE }) {
  if (setup.endsWith('/light-trace') && !fs.existsSync(path.join(root, 'index.js'))) return `there is no index.js in ${root}`
  if (node < minNode) return `it wants Node ${minNode}`
  return undefined
}
