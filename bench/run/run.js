'use strict'

// A run consists of blocks of cases that share a baseline, one block after the other. In a block, every server is started and warmed up.
// Then come rounds over all of them in a rotating order, so that changes in the machine's speed affect all equally.

const { freePort } = require('../../scripts/free-port')
const { ask } = require('./ipc')
const { startTool, startServer, freeze, stop, stopAll } = require('./processes')
const { pinBench } = require('./pinning')
const { measure, load, FLUSH_MS } = require('./round')
const { nodeOfMajor } = require('./binaries')

module.exports = { run, stepsOf, environmentOf }

// cases: entries of cases.js. progress: (sentence) => void
// → [{ testCase, node, versions, rounds: [figures] }]
async function run (cases, { profile, headlineNode, progress }) {
  pinBench()
  const tools = nodeOfMajor(headlineNode)
  const [loader, sink] = await Promise.all([startTool('load', tools), startTool('sink', tools)])
  const binaryFor = ({ node = headlineNode }) => nodeOfMajor(node)
  const context = { profile, progress, loader, sink, down: await freePort(), binaryFor }
  try {
    const measured = []
    for (const block of blocksOf(cases)) measured.push(...await runBlock(block, context))
    return measured
  } finally {
    await stopAll()
  }
}

// The number of progress messages of a run.
function stepsOf (cases, { rounds }) {
  return cases.length * (rounds + 1)
}

function blocksOf (cases) {
  const blocks = new Map()
  for (const testCase of cases) {
    const { against = 'bare' } = testCase
    if (!blocks.has(against)) blocks.set(against, [])
    blocks.get(against).push(testCase)
  }
  return blocks.values()
}

async function runBlock (block, context) {
  const { profile, progress } = context
  const benches = []
  for (const testCase of block) {
    progress(`warming ${testCase.name} up`)
    benches.push(await warmUp(testCase, context))
  }
  for (let round = 0; round < profile.rounds; round++) {
    for (const bench of rotated(benches, round)) {
      progress(`round ${round + 1} of ${profile.rounds}: ${bench.testCase.name}`)
      bench.rounds[round] = await measure(bench, profile)
    }
  }
  for (const { server } of benches) await stop(server)
  return benches.map(({ testCase, server, rounds }) => ({ testCase, node: server.ready.runtime, versions: server.ready.versions, rounds }))
}

async function warmUp (testCase, { profile, loader, sink, down, binaryFor }) {
  const server = await startServer(testCase, { binary: binaryFor(testCase), env: environmentOf(testCase, sink, down) })
  const bench = { testCase, server, loader, sink, rounds: [] }
  await load(bench, { ...profile, seconds: profile.warmup })
  await ask(server, 'begin')
  await ask(server, 'end', { flushMs: FLUSH_MS })
  freeze(server)
  return bench
}

function environmentOf (testCase, sink, down) {
  return { ...ownEnvironment(), ...serverEnv(testCase, sink, down) }
}

// The environment without the shell's own settings for what is measured, which are not part of a case.
function ownEnvironment () {
  const entries = Object.entries(process.env).filter(([name]) => !/^(OTEL_|NODE_OPTIONS$)/.test(name))
  return { ...Object.fromEntries(entries), NODE_ENV: 'production' }
}

function serverEnv (testCase, sink, down) {
  const base = `http://127.0.0.1:${sink.ready.port}`
  const env = { LIGHT_TRACE_BENCH: JSON.stringify({ setup: testCase.setup, options: testCase.options, down: testCase.down, upstream: `${base}/upstream`, redis: testCase.redisPort, postgresql: testCase.postgresqlPort }) }
  for (const [name, value] of Object.entries(testCase.env ?? {})) {
    env[name] = value.replace('{sink}', `${base}/${encodeURIComponent(testCase.name)}`).replace('{down}', `http://127.0.0.1:${down}`)
  }
  return env
}

function rotated (list, by) {
  const start = by % list.length
  return [...list.slice(start), ...list.slice(0, start)]
}
