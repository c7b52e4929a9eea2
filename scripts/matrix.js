'use strict'

// npm run test:matrix [-- --only <cell>]… [--long] [--at-once] [test files]
//
// --long: runs the tests that take minutes at full length (npm run test:suite -- faults).
// --at-once: runs all cells at the same time, for tests that mostly wait.
// --list: only prints the cells' names, as JSON; CI makes a job of each.
//
// Runs the suite once per cell below, each in its own directory under .matrix/, so that cells do not see each other's packages or files.
// Prints one line per cell, then `N passed, N failed`.

const { parseArgs } = require('node:util')
const { runCell } = require('./matrix-cell')
const { testFiles, testsIn } = require('./tests')

// Tests that depend on a package's version. The rest of the suite runs in the Node cells.
const OF_FASTIFY = ['test/registration.test.js', 'test/misuse.test.js', 'test/examples.test.js', 'test/context', 'test/config', 'test/fastify', 'test/outbound', 'test/otel', 'test/metrics', 'test/serverless']
const OF_API = ['test/registration.test.js', 'test/testing.test.js', 'test/context', 'test/span', 'test/fastify', 'test/outbound', 'test/otel', 'test/metrics', 'test/otlp']
// Tests that depend on how Node implements AsyncLocalStorage.
const OF_CONTEXT = ['test/registration.test.js', 'test/misuse.test.js', 'test/context', 'test/span', 'test/fastify', 'test/outbound', 'test/otel', 'test/logs', 'test/runtime', 'test/serverless']

// npm run test:suite -- faults runs these at full length on Node 20 and 24. Here they run on the newest Node, in their short form.
const FAULTS = /^test\/faults\//
// Tests that no Node version affects: parsers, encoders, options, pages of the viewer. Only the oldest and the newest Node run them.
const OF_NO_NODE = /^test\/(?:config\/|otlp\/|viewer\/(?!run-|check|commands))/

const CELLS = [
  { name: 'node20', node: 20, without: [FAULTS] },
  { name: 'node22', node: 22, without: [FAULTS, OF_NO_NODE] },
  { name: 'node22-frames', node: 22, flag: '--experimental-async-context-frame', files: OF_CONTEXT },
  { name: 'node24', node: 24, without: [FAULTS, OF_NO_NODE] },
  { name: 'node26', node: 26 },
  // The cells above use the Fastify of the lockfile. This one uses the newest that users get.
  { name: 'fastify-newest', node: 24, newest: { fastify: '^5.0.0' }, files: OF_FASTIFY },
  // The oldest supported versions of everything, together: they only interact through light-trace.
  { name: 'oldest', node: 20, replaced: { fastify: '5.0.0', '@opentelemetry/api': '1.9.0' }, files: [...new Set([...OF_FASTIFY, ...OF_API])] },
  // The newest versions: majors or minors that most users do not have yet.
  { name: 'newest', node: 26, newest: { fastify: '^6.0.0-alpha.0' }, replaced: { '@opentelemetry/api': '1.10.0' }, files: [...new Set([...OF_FASTIFY, ...OF_API])] }
]

main().then((code) => { process.exitCode = code })

async function main () {
  const { values, positionals } = parseArgs({ options: { only: { type: 'string', multiple: true }, long: { type: 'boolean', default: false }, 'at-once': { type: 'boolean', default: false }, list: { type: 'boolean', default: false } }, allowPositionals: true })
  if (values.list) {
    console.log(JSON.stringify(CELLS.map((cell) => cell.name)))
    return 0
  }
  const unknown = values.only?.filter((name) => !CELLS.some((cell) => cell.name === name)) ?? []
  if (unknown.length > 0) {
    console.error(`unknown cell: ${unknown.join(', ')}; there are ${CELLS.map((cell) => cell.name).join(', ')}`)
    return 1
  }
  const total = { passed: 0, failed: 0 }
  const runOne = async (cell) => {
    const { passed, failed, line } = await runCell({ ...cell, isLong: values.long, isAsked: positionals.length > 0 }, positionals.length > 0 ? positionals : filesOf(cell))
    total.passed += passed
    total.failed += failed
    console.log(`${failed === 0 ? 'ok    ' : 'FAILED'} ${cell.name.padEnd(14)} ${line}`)
  }
  const cells = CELLS.filter(({ name }) => values.only === undefined || values.only.includes(name))
  if (values['at-once']) await Promise.all(cells.map(runOne))
  else for (const cell of cells) await runOne(cell)
  console.log(`${total.passed} passed, ${total.failed} failed`)
  return total.failed === 0 ? 0 : 1
}

function filesOf ({ files, without = [] }) {
  return (files?.flatMap(testsIn) ?? testFiles({ all: true })).filter((file) => !without.some((left) => left.test(file)))
}
