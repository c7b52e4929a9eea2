'use strict'

// From the command to listening, over what Node itself takes to start; both in turns.

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

// To its first word, as the viewer's is.
function nodeAlone () {
  const startedAt = performance.now()
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['-e', 'process.stderr.write("x")'], { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.once('data', () => resolve(performance.now() - startedAt))
  })
}

module.exports = { measureStart }
