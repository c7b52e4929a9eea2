'use strict'

// The app in a process of its own: its standard streams, signals and exit code are passed through.

const { spawn } = require('node:child_process')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { isFile, UsageError } = require('./arguments')
const { appEnvironment } = require('./environment')

const PRELOAD = pathToFileURL(join(__dirname, '../preload.js')).href
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGBREAK']

// A terminal sends these to the app as well: handed on, they would come twice, and many apps leave at once at the second.
const BY_TERMINAL = new Set(['SIGINT', 'SIGQUIT', 'SIGHUP'])

const TYPESCRIPT = /\.[cm]?ts$/

/** @returns {Promise<{ code: number | null, signal: string | null }>} how it ended */
async function runProgram (viewer, { program, options, nodeOptions }, say) {
  const [name] = program
  const { env, notes } = appEnvironment(process.env, { port: viewer.port, host: options.host, token: viewer.token })
  for (const note of notes) say(note)
  const { file, args, extra } = isFile(name) ? nodeCommand(program, nodeOptions, options) : otherCommand(program, nodeOptions, options, env)
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: 'inherit', env: { ...env, ...extra }, shell: process.platform === 'win32' && file !== process.execPath })
    const stop = passSignals(child)
    viewer.app = { command: program.join(' ').slice(0, 200), pid: child.pid, running: true, exit: null }
    child.on('error', (error) => {
      stop()
      reject(Object.assign(new Error(`${name} could not be started: ${error.message}`), { expected: true }))
    })
    child.on('exit', (code, signal) => {
      stop()
      Object.assign(viewer.app, { running: false, exit: signal ?? code })
      viewer.events.touch()
      resolve({ code, signal })
    })
  })
}

function nodeCommand ([file, ...rest], nodeOptions, { watch }) {
  const args = [...nodeOptions, ...(TYPESCRIPT.test(file) ? stripTypes() : []), '--import', PRELOAD, file, ...rest]
  return { file: process.execPath, args: watch ? ['--watch', ...args] : args }
}

function stripTypes () {
  if (process.features.typescript) return []
  if (process.allowedNodeEnvironmentFlags.has('--experimental-strip-types')) return ['--experimental-strip-types']
  throw new UsageError(`Node ${process.versions.node} does not run TypeScript: use Node 22.18 or newer, or a loader: light-trace --import=tsx app.ts`)
}

// Every Node process that the command starts is traced.
function otherCommand ([file, ...args], nodeOptions, { watch }, env) {
  if (watch) throw new UsageError('--watch is for a file: the command has to watch for itself')
  if (nodeOptions.length > 0) throw new UsageError(`${nodeOptions[0]} is for a file: put it into NODE_OPTIONS`)
  return { file, args, extra: { NODE_OPTIONS: `${env.NODE_OPTIONS ?? ''} --import=${PRELOAD}`.trim() } }
}

function passSignals (child) {
  const pass = (signal) => {
    if (!BY_TERMINAL.has(signal) || !process.stdin.isTTY) child.kill(signal)
  }
  for (const signal of SIGNALS) process.on(signal, pass)
  return () => { for (const signal of SIGNALS) process.removeListener(signal, pass) }
}

module.exports = { runProgram }
