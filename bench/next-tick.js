'use strict'

// npm run bench -- next-tick: runs bench/upstream/next-tick.js on every supported Node, with and without keeping one record alive.
// --publish writes bench/results/next-tick.json, for bench/upstream/README.md.

const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { nodeOfMajor } = require('./run/binaries')
const { describeCommit, describeMachine } = require('./run/machine')
const { median } = require('./run/statistics')
const { writeResults } = require('./report/results-file')

const NODES = [20, 22, 24, 26]
const ROUNDS = 5
const SCRIPT = path.join(__dirname, 'upstream/next-tick.js')

const rows = NODES.map((major) => {
  const runs = Array.from({ length: ROUNDS }, () => ({ forgotten: runOnce(major, []), kept: runOnce(major, ['keep']) }))
  const of = (pick) => median(runs.map(pick))
  return {
    node: runs[0].kept.node,
    before: of(({ forgotten }) => forgotten.before),
    after: of(({ forgotten }) => forgotten.after),
    keptBefore: of(({ kept }) => kept.before),
    keptAfter: of(({ kept }) => kept.after)
  }
})
console.table(rows)
if (process.argv.includes('--publish')) {
  console.error(`wrote ${writeResults('next-tick', { date: new Date().toISOString(), ...describeCommit(__dirname), machine: describeMachine(), rounds: ROUNDS, rows })}`)
}

// Parses the line that the script prints.
function runOnce (major, args) {
  const line = execFileSync(nodeOfMajor(major), ['--expose-gc', SCRIPT, ...args], { encoding: 'utf8' })
  const [, node, before, after] = /^Node v(\S+): (\d+) ns a tick before, (\d+) ns after/.exec(line)
  return { node, before: Number(before), after: Number(after) }
}
