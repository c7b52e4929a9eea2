'use strict'

// A run: start everything, warm every server up, then rounds over all cases in an order that rotates,
// so that a machine that gets slower or faster meanwhile does it to all of them alike.

const net = require('node:net')
const { once } = require('node:events')
const { ask } = require('./ipc')
const { startTool, startServer, freeze, stopAll } = require('./processes')
const { pinBench } = require('./pinning')
const { measure, load } = require('./round')
const nodeOfMajor = require('./nodes')

module.exports = run

// cases: entries of cases.js. node: a binary for all servers, over each case's own. progress: (sentence) => void
// → [{ testCase, node, versions, rounds: [figures] }]
async function run (cases, { profile, node, headlineNode, progress, env = {} }) {
  pinBench()
  const tools = nodeOfMajor(headlineNode)
  const [loader, sink] = await Promise.all([startTool('load', tools), startTool('sink', tools)])
  const down = await unusedPort()
  try {
    const benches = []
    for (const testCase of cases) {
      progress(`starting ${testCase.name}`)
      const binary = node ?? nodeOfMajor(testCase.node ?? headlineNode)
      const server = await startServer(testCase, { node: binary, env: { ...process.env, ...env, ...serverEnv(testCase, sink, down) } })
      benches.push({ testCase, server, loader, sink, node: server.ready.node, versions: server.ready.versions, rounds: [] })
      progress(`warming ${testCase.name} up`)
      await load({ testCase, server, loader }, { ...profile, seconds: profile.warmup, rate: 0 })
      await ask(server, 'begin')
      await ask(server, 'end', { flushMs: testCase.down ? 50 : 20_000 })
      freeze(server)
    }
    for (let round = 0; round < profile.rounds; round++) {
      for (const bench of rotated(benches, round)) {
        progress(`round ${round + 1} of ${profile.rounds}: ${bench.testCase.name}`)
        bench.rounds[round] = await measure(bench, profile)
      }
    }
    return benches.map(({ testCase, node, versions, rounds }) => ({ testCase, node, versions, rounds }))
  } finally {
    await stopAll()
  }
}

function serverEnv (testCase, sink, down) {
  const base = `http://127.0.0.1:${sink.ready.port}`
  const env = { LIGHT_TRACE_BENCH: JSON.stringify({ setup: testCase.setup, options: testCase.options, upstream: `${base}/upstream` }) }
  for (const [name, value] of Object.entries(testCase.env ?? {})) {
    env[name] = value.replace('{sink}', `${base}/${testCase.name}`).replace('{down}', `http://127.0.0.1:${down}`).replace('{base}', base)
  }
  return env
}

function rotated (list, by) {
  const start = by % list.length
  return [...list.slice(start), ...list.slice(0, start)]
}

// A port that refuses connections: it was free a moment ago, and nothing here takes ports by number.
async function unusedPort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
