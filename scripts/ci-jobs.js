'use strict'

// node scripts/ci-jobs.js: what .ci/run runs, as JSON for the matrices of .github/workflows/ci.yml:
// { cells, suites, benches }. So the two cannot differ.

const { execFileSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')

const ROOT = join(__dirname, '..')

module.exports = { jobs }

if (require.main === module) console.log(JSON.stringify(jobs()))

function jobs () {
  const lanes = [...readFileSync(join(ROOT, '.ci', 'run'), 'utf8').matchAll(/^ *lane ([^(&]+?)(?: &)?$/gm)]
  const suites = lanes.flatMap(([, names]) => names.split(' '))
  const cells = execFileSync(process.execPath, [join(__dirname, 'matrix.js'), '--list'], { encoding: 'utf8' })
  return {
    cells: JSON.parse(cells),
    suites: suites.filter((name) => name !== 'test:matrix' && !name.startsWith('bench:')),
    benches: suites.filter((name) => name.startsWith('bench:'))
  }
}
