'use strict'

// Measures the time from the command until it listens, minus the start of Node itself. The two take turns.

const { spawn } = require('node:child_process')
const { startCommand, median } = require('./process')

const ROUNDS = 15

async function measureStart () {
  const commands = []
  const nodes = []
  for (let round = 0; round < ROUNDS; round++) {
    const viewer = await startCommand([])
    commands.push(viewer.listeningAfterMs)
    await viewer.end()
    nodes.push(await nodeAlone())
  }
  return { rounds: ROUNDS, listeningMs: median(commands), nodeMs: median(nodes), overMs: median(commands.map((ms, i) => ms - nodes[i])) }
}

// Until Node writes its first output, as for the viewer.
function nodeAlone () {
  const startedAt = performance.now()
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['-e', 'process.stderr.write("x")'], { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.once('data', () => resolve(performance.now() - startedAt))
  })
}

module.exports = { measureStart }
