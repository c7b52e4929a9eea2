'use strict'

// npm run bench:micro [-- name …] [--node path]: each file here in a process of its own, so that one
// does not shape the types that another's code sees.

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { HEADLINE_NODE } = require('../cases')
const { nodeOfMajor } = require('../run/binaries')

const { positionals, values: { node = nodeOfMajor(HEADLINE_NODE) } } = parseArgs({ allowPositionals: true, options: { node: { type: 'string' } } })

const files = fs.readdirSync(__dirname)
  .filter((file) => file.endsWith('.bench.js'))
  .filter((file) => positionals.length === 0 || positionals.some((name) => file.startsWith(name)))

for (const file of files) {
  // The young generation is large enough for a sample, so that allocation can be read off the heap.
  const { status } = spawnSync(node, ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=64', path.join(__dirname, file)], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
