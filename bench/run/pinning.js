'use strict'

// The server runs alone on core 0. Load and sink share the next core if there are only two; otherwise each has its own. Without taskset
// (macOS, Windows) nothing is pinned, and the result says that.

const { availableParallelism } = require('node:os')
const { execFileSync, spawn } = require('node:child_process')

const cores = availableParallelism()
const last = cores - 1
const CORE_OF = { server: 0, load: Math.min(1, last), sink: Math.min(2, last), bench: last }
const pinned = process.platform === 'linux' && cores > 1 && hasTaskset()

module.exports = { spawnPinned, pinBench, describePinning, pinned, cores }

// Starts a child process with an IPC channel, on the core of its role. Roles without an entry in CORE_OF are not pinned.
function spawnPinned (role, file, args, { env = process.env, cwd, title = role } = {}) {
  const [command, ...rest] = pinned && role in CORE_OF
    ? ['taskset', '-c', String(CORE_OF[role]), file, ...args]
    : [file, ...args]
  const child = spawn(command, rest, { env, cwd, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  child.title = title
  child.lastWords = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8')
    stream.on('data', (text) => { child.lastWords = (child.lastWords + text).slice(-4000) })
  }
  child.on('error', (error) => { child.lastWords += error.message })
  return child
}

function pinBench () {
  if (pinned) execFileSync('taskset', ['-a', '-c', '-p', String(CORE_OF.bench), String(process.pid)], { stdio: 'ignore' })
}

function describePinning () {
  if (!pinned) return 'nothing pinned'
  const sink = CORE_OF.sink === CORE_OF.load ? `load and sink on core ${CORE_OF.load}` : `load on core ${CORE_OF.load}, sink on core ${CORE_OF.sink}`
  return `server on core ${CORE_OF.server}, ${sink} (taskset)`
}

function hasTaskset () {
  try {
    execFileSync('taskset', ['-c', '0', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
