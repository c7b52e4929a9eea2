'use strict'

// Starts and stops the bench's processes: the load, the sink, and one server per case. A server that is not being measured is frozen
// with SIGSTOP, so that its timers do not disturb the server that is.

const path = require('node:path')
const { once } = require('node:events')
const { spawnPinned } = require('./pinning')

const READY_WITHIN_MS = 60_000
const canFreeze = process.platform !== 'win32'
const started = new Set()

// However the bench ends, its processes end too, including frozen ones.
process.once('exit', () => { for (const child of started) child.kill('SIGKILL') })
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

module.exports = { start, startTool, startServer, freeze, thaw, stop, stopAll }

// role: 'load' | 'sink' → the process, with the message that it sent when it became ready
function startTool (role, node) {
  return start(spawnPinned(role, node, [path.join(__dirname, '..', role, 'main.js')]))
}

function startServer ({ name }, { binary, env }) {
  return start(spawnPinned('server', binary, [path.join(__dirname, '../server/main.js')], { env, title: name }))
}

// withinMs: how long it may take to become ready
async function start (child, withinMs = READY_WITHIN_MS) {
  started.add(child)
  child.once('exit', (code) => {
    started.delete(child)
    if (code > 0) console.error(`${child.title} exited with ${code}\n${child.lastWords}`) // otherwise only the load generator would report it, as closed connections
  })
  const ready = new Promise((resolve, reject) => {
    const timer = setTimeout(reject, withinMs, new Error(`${child.title} did not become ready\n${child.lastWords}`))
    child.on('message', (message) => {
      if (!message.ready) return
      clearTimeout(timer)
      resolve(message)
    })
    child.once('exit', (code) => {
      clearTimeout(timer)
      setImmediate(() => reject(new Error(`${child.title} exited with ${code} before it was ready\n${child.lastWords}`)))
    })
  })
  child.ready = await ready
  return child
}

function freeze (child) {
  if (canFreeze) child.kill('SIGSTOP')
}

function thaw (child) {
  if (canFreeze) child.kill('SIGCONT')
}

async function stop (child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  thaw(child)
  const gone = once(child, 'exit')
  const deadline = setTimeout(() => child.kill('SIGKILL'), 5000)
  if (child.connected) child.disconnect()
  await gone
  clearTimeout(deadline)
}

function stopAll () {
  return Promise.all([...started].map(stop))
}
