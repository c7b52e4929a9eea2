'use strict'

// Runs the app in a separate process, and passes its standard streams, signals and exit code through.

const { spawn } = require('node:child_process')
const { closeSync, openSync, readSync } = require('node:fs')
const { join, resolve: absolute } = require('node:path')
const { pathToFileURL } = require('node:url')
const { isFile, UsageError } = require('./arguments')
const { appEnvironment } = require('./environment')

const PRELOAD = pathToFileURL(join(__dirname, '../preload.js')).href
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGBREAK']

// A terminal sends these to the app as well. If we forwarded them, they would arrive twice, and many apps exit immediately at the second.
const BY_TERMINAL = new Set(['SIGINT', 'SIGQUIT', 'SIGHUP'])

const TYPESCRIPT = /\.[cm]?ts$/
const LOADER = /(?:^|\s)(?:--(?:import|require|loader|experimental-loader)|-r)\b/

const FOR_NODE = /\.[cm]?[jt]sx?$/
const FIRST_LINE_BYTES = 256

/** @returns {Promise<{ code: number | null, signal: string | null, isOver: boolean }>} how the app ended; isOver: a signal asked the command to end, too */
async function runProgram (viewer, { program, options, nodeOptions }, say) {
  const [name] = program
  const { env, notes } = appEnvironment(process.env, { port: viewer.port, host: options.host, token: viewer.token })
  for (const note of notes) say(note)
  const interpreter = isFile(name) ? interpreterOf(name) : []
  const { file, args, extra } = interpreter === null
    ? nodeCommand(program, nodeOptions, options)
    : otherCommand([...interpreter, isFile(name) ? absolute(name) : name, ...program.slice(1)], nodeOptions, options, env)
  return new Promise((resolve, reject) => {
    const shell = process.platform === 'win32' && file !== process.execPath // on Windows, npm and similar commands are scripts
    const child = spawn(shell ? [file, ...args].map(wordForCmd).join(' ') : file, shell ? [] : args, { stdio: 'inherit', env: { ...env, ...extra }, shell })
    const { stop, told } = passSignals(child)
    viewer.app = { command: program.join(' ').slice(0, 200), pid: child.pid, running: true, exit: null }
    child.on('error', (error) => {
      stop()
      reject(Object.assign(new Error(`${name} could not be started: ${error.message}`), { expected: true }))
    })
    child.on('exit', (code, signal) => {
      stop()
      Object.assign(viewer.app, { running: false, exit: signal ?? code })
      viewer.events.touch()
      resolve({ code, signal, isOver: told.has('SIGTERM') || told.has('SIGHUP') }) // Ctrl-C is meant for the app only
    })
  })
}

/** @returns {string[] | null} the command that runs a file, from its #! line as in the system; null: Node runs it */
function interpreterOf (file) {
  if (FOR_NODE.test(file)) return null
  const start = Buffer.alloc(FIRST_LINE_BYTES)
  try {
    const fd = openSync(file, 'r')
    readSync(fd, start)
    closeSync(fd)
  } catch {
    return null // a folder, or a name without its extension
  }
  const line = /^#!(.+)/.exec(start.latin1Slice())?.[1].trim()
  if (line !== undefined) return /\bnode\b/.test(line) ? null : line.split(/\s+/)
  if (/\.(?:sh|bash)$/.test(file)) return ['sh']
  return start.latin1Slice(0, 4) === '\x7fELF' || /\.(?:cmd|bat|exe)$/i.test(file) ? [] : null
}

function nodeCommand ([file, ...rest], nodeOptions, { watch }) {
  const args = [...nodeOptions, ...(TYPESCRIPT.test(file) ? stripTypes(nodeOptions) : []), '--import', PRELOAD, file, ...rest]
  return { file: process.execPath, args: watch ? ['--watch', ...args] : args }
}

function stripTypes (nodeOptions) {
  if (process.features.typescript) return []
  if (process.allowedNodeEnvironmentFlags.has('--experimental-strip-types')) return ['--experimental-strip-types']
  if ([...nodeOptions, process.env.NODE_OPTIONS].some((option) => LOADER.test(option))) return [] // tsx, ts-node, …
  throw new UsageError(`Node ${process.versions.node} does not run TypeScript. Use Node 22.18 or later, or a loader: light-trace --import=tsx app.ts`)
}

// NODE_OPTIONS makes every Node process that the command starts load the preload.
function otherCommand (command, nodeOptions, { watch }, env) {
  if (watch) throw new UsageError('--watch works only for a file that Node runs, not for a command')
  if (nodeOptions.length > 0) throw new UsageError(`${nodeOptions[0]} works only for a file that Node runs. For a command, put it into NODE_OPTIONS`)
  const [file, ...args] = command
  return { file, args, extra: { NODE_OPTIONS: `${env.NODE_OPTIONS ?? ''} --import=${PRELOAD}`.trim() } }
}

/** Quotes a word of a command line, so that cmd.exe passes it on whole and Windows programs parse it correctly. */
function wordForCmd (word) {
  return /^[\w.:/\\=@+-]+$/.test(word) ? word : `"${word.replaceAll('"', '""').replace(/(?<!\\)\\+$/, '$&$&')}"`
}

function passSignals (child) {
  const told = new Set()
  const pass = (signal) => {
    told.add(signal)
    if (process.platform === 'win32') return // the console sends signals to the app as well, and `kill` would end the app at once
    if (!BY_TERMINAL.has(signal) || !process.stdin.isTTY) child.kill(signal)
  }
  for (const signal of SIGNALS) process.on(signal, pass)
  return { told, stop: () => { for (const signal of SIGNALS) process.removeListener(signal, pass) } }
}

module.exports = { runProgram, wordForCmd }
