'use strict'

// Runs one child process: collects its output, and stops its whole process group when it is stopped or when this process receives a
// signal.

module.exports = { run, start }

const { spawn, spawnSync } = require('node:child_process')
const { createWriteStream } = require('node:fs')

const IS_WINDOWS = process.platform === 'win32'
const GRACE_MS = 5_000
const running = new Set()

for (const [signal, number] of [['SIGINT', 2], ['SIGTERM', 15], ['SIGHUP', 1]]) {
  process.once(signal, async () => {
    await Promise.all([...running].map((child) => child.stop()))
    process.exit(128 + number)
  })
}

/**
 * Runs a command until it ends.
 * @param {{ cwd?: string, env?: object, log?: string, live?: boolean, shell?: boolean, deadlineMs?: number }} options log: a file that
 *   also gets the output; live: print the output as it arrives; deadlineMs: stop the command after this time, which is a failure
 * @returns {Promise<{ code: number | string, output: string }>} the exit code, or the name of the signal
 */
async function run (command, args, { log, live = false, deadlineMs, ...options }) {
  const child = start(command, args, { ...options, log, live })
  const timer = deadlineMs && setTimeout(() => child.stop(), deadlineMs)
  const code = await child.ended
  clearTimeout(timer)
  return { code, output: child.output() }
}

/**
 * Starts a command.
 * @returns {{ pid: number, alive: () => boolean, ended: Promise<number | string>, output: () => string, stop: () => Promise<void> }}
 */
function start (command, args, { cwd, env, log, live = false, shell = false } = {}) {
  const child = spawn(command, args, { cwd, env, shell, detached: !IS_WINDOWS, stdio: ['ignore', 'pipe', 'pipe'] })
  const pieces = []
  const file = log && createWriteStream(log)
  const keep = (piece) => {
    pieces.push(piece)
    file?.write(piece)
    if (live) process.stdout.write(piece)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const handle = {
    pid: child.pid,
    alive: () => running.has(handle),
    output: () => Buffer.concat(pieces).toString(),
    ended: new Promise((resolve) => {
      child.once('error', (error) => { keep(Buffer.from(`${command}: ${error.message}\n`)); resolve(127) })
      child.once('close', (code, signal) => resolve(code ?? signal))
    }).finally(() => {
      running.delete(handle)
      file?.end()
    }),
    async stop () {
      if (!running.has(handle)) return
      signalGroup(child.pid, 'SIGTERM')
      const timer = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), GRACE_MS)
      await handle.ended
      clearTimeout(timer)
    }
  }
  running.add(handle)
  return handle
}

// Windows has neither groups nor signals, so the process and its children are ended at once.
function signalGroup (pid, signal) {
  if (IS_WINDOWS) return spawnSync('taskkill', ['/pid', String(pid), '/t', '/f'])
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error // the group has already ended
  }
}
