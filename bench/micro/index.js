'use strict'

// npm run bench -- micro [-- name …] [--node path] [--publish]: runs each file here in its own process, so that one benchmark does not
// influence the types that V8 sees in another's code. --publish writes bench/results/micro.json, the source of the table in
// docs/architecture.md that shows the garbage of each step of a request.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawnSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { HEADLINE_NODE } = require('../cases')
const { nodeOfMajor } = require('../run/binaries')
const { describeMachine, describeCommit } = require('../run/machine')
const { writeResults } = require('../report/results-file')

const { positionals, values: { node = nodeOfMajor(HEADLINE_NODE), publish: isPublished } } = parseArgs({
  allowPositionals: true,
  options: { node: { type: 'string' }, publish: { type: 'boolean', default: false } }
})
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-micro-'))
const results = path.join(folder, 'results')

const files = fs.readdirSync(__dirname)
  .filter((file) => file.endsWith('.bench.js'))
  .filter((file) => positionals.length === 0 || positionals.some((name) => file.startsWith(name)))

for (const file of files) {
  // The young generation is large enough for a whole sample, so that allocation can be read from the heap size.
  const { status } = spawnSync(node, ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=64', path.join(__dirname, file)], { stdio: 'inherit', env: { ...process.env, MICRO_RESULTS: results } })
  if (status !== 0) process.exitCode = 1
}

if (isPublished) writePublished()
fs.rmSync(folder, { recursive: true })

function writePublished () {
  const rows = fs.readFileSync(results, 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  writeResults('micro', { date: new Date().toISOString(), ...describeCommit(__dirname), machine: describeMachine(), node: version, rows })
}
