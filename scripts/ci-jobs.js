'use strict'

// node scripts/ci-jobs.js: prints what .ci/run runs and what it has no time for, as JSON for the matrices of .github/workflows/ci.yml:
// { cells, suites, benches }. That keeps the two in step.

const { execFileSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { SUITES } = require('./suites')

const ROOT = join(__dirname, '..')

// Building the fleet's collector takes five minutes on two cores; the workflow caches it. Of the features, which take two minutes each,
// .ci/run has two.
const LEFT_OUT = ['fleet', 'features']

module.exports = { jobs, LEFT_OUT }

if (require.main === module) console.log(JSON.stringify(jobs()))

function jobs () {
  const lanes = [...readFileSync(join(ROOT, '.ci', 'run'), 'utf8').matchAll(/^ *lane ([^(&]+?)(?: &)?$/gm)]
  const names = lanes.flatMap(([, names]) => names.split(' '))
  const cells = execFileSync(process.execPath, [join(__dirname, 'matrix.js'), '--list'], { encoding: 'utf8' })
  return {
    cells: JSON.parse(cells),
    suites: [...new Set([...names, ...LEFT_OUT])].filter((name) => Object.hasOwn(SUITES, name)),
    benches: names.filter((name) => name.startsWith('bench:'))
  }
}
