'use strict'

// Selects the cases that a run measures: the named cases, preceded by their baselines, without those that cannot run here.

const fs = require('node:fs')
const path = require('node:path')
const { HEADLINE_NODE } = require('./cases')

const root = process.env.LIGHT_TRACE_ROOT ?? path.join(__dirname, '..')

module.exports = chooseCases

function chooseCases (table, names) {
  const wanted = names.map((name) => caseNamed(table, name))
  return [...new Set([...wanted.map(({ against = 'bare' }) => caseNamed(table, against)), ...wanted])].filter((testCase) => {
    const missing = whyNot(testCase)
    if (missing) console.error(`skipped ${testCase.name}: ${missing}`)
    return !missing
  })
}

function caseNamed (table, name) {
  const found = table.find((testCase) => testCase.name === name)
  if (!found) throw new Error(`no case is called "${name}"; there are ${table.map(({ name }) => name).join(', ')}`)
  return found
}

function whyNot ({ setup, minNode = 0, node = HEADLINE_NODE }) {
  if (setup.endsWith('/light-trace') && !fs.existsSync(path.join(root, 'index.js'))) return `${root} has no index.js`
  if (node < minNode) return `it needs Node ${minNode}`
  return undefined
}
