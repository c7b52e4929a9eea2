'use strict'

// Runs the command line as a user does, in its own folder.

const { spawn } = require('node:child_process')
const { join } = require('node:path')

const CLI = join(__dirname, '../../viewer/cli.js')
const KILL_AFTER_MS = 150_000 // on a busy machine, each of the two processes may need many seconds to start

/** An app with routes that answer, that fail, and that report what the app was given. */
const APP = `
const app = require('fastify')()
app.get('/users/:id', async (request) => ({ id: request.params.id }))
app.get('/boom', async () => { throw new TypeError('x is undefined') })
app.get('/given', async () => ({ args: process.argv.slice(2), delay: process.env.OTEL_BSP_SCHEDULE_DELAY, execArgv: process.execArgv.length }))
app.get('/exit', async () => { setImmediate(() => process.exit(7)); return {} })
app.listen({ port: 0, host: '127.0.0.1' }).then((address) => console.log('app at ' + address))
`

/** @returns {{ output (pattern): Promise<RegExpExecArray>, exit: Promise<{ code, signal, stdout, stderr }>, kill (signal), stdin, stdout, text (): string }} */
function runCommand (t, args, { cwd, env = {}, input, isGroup = false } = {}) {
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd, env: { PATH: process.env.PATH, ...env }, stdio: ['pipe', 'pipe', 'pipe'], detached: isGroup
  })
  // A signal that the command forwards, because the app must exit, too.
  t.teardown(() => {
    child.kill('SIGTERM')
    return exit
  })
  const timer = setTimeout(() => {
    child.kill('SIGKILL')
    for (const pipe of [child.stdout, child.stderr]) pipe.destroy() // an app that keeps running would keep them open, and the test waiting
  }, KILL_AFTER_MS)
  const texts = { stdout: '', stderr: '' }
  const listeners = new Set()
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (piece) => {
      texts[name] += piece
      for (const listen of listeners) listen()
    })
  }
  if (input !== undefined) child.stdin.end(input)
  const exit = new Promise((resolve) => child.on('close', (code, signal) => {
    clearTimeout(timer)
    resolve({ code, signal, ...texts })
  }))
  const text = () => texts.stdout + texts.stderr
  return {
    exit,
    text,
    pid: child.pid,
    stdin: child.stdin,
    stdout: child.stdout,
    kill: (signal) => process.kill(isGroup ? -child.pid : child.pid, signal),
    output: (pattern) => new Promise((resolve, reject) => {
      const listen = () => {
        const match = pattern.exec(text())
        if (match !== null) resolve(match)
      }
      listeners.add(listen)
      exit.then(({ code, signal }) => reject(new Error(`ended with ${code ?? signal}: ${text()}`)))
      listen()
    })
  }
}

/** Runs `light-trace app.js`. Resolves when both are listening. */
async function runApp (t, { options = [], args = [], files = { 'app.js': APP }, program = 'app.js', env, isGroup, address = /(http:\/\/localhost:\d+)/ } = {}) {
  const cwd = t.testdir(files)
  const command = runCommand(t, ['--port', '0', ...options, program, ...args], { cwd, env, isGroup })
  const [, viewer] = await command.output(address)
  const [, app] = await command.output(/app at (http:\/\/\S+)/)
  return { ...command, viewer, app, cwd, json: async (path) => (await fetch(viewer + path)).json() }
}

/** Repeats until the answer is right, because spans arrive asynchronously. */
async function eventually (ask, isRight) {
  for (;;) {
    const answer = await ask()
    if (isRight(answer)) return answer
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** For `eventually`: whether so many requests have arrived with all their spans. The root ends last, and may come in a later batch. */
function arrived (count) {
  return ({ traces }) => traces.length === count && traces.every(({ root }) => root)
}

module.exports = { runCommand, runApp, eventually, arrived, APP, CLI }
