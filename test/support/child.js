'use strict'

// Runs a function of a test in a separate process.
//
//   const child = runInChild(t, ({ Fastify, lightTrace, say }, url) => { … say({ … }) … }, { args: [url] })
//   const { code, signal, said, stderr } = await child.exit
//
// The child is killed after half a minute, so a child that ended by itself did not wait longer than that. The function is passed as source
// text. It sees only its parameters and Node's globals.

const path = require('node:path')
const { spawn } = require('node:child_process')

const ROOT = path.join(__dirname, '../..')
const KILL_AFTER_MS = 30_000

module.exports = { runInChild }

let children = 0

const PRELUDE = `
const Fastify = require('fastify')

const say = (value) => require('node:fs').writeSync(1, JSON.stringify(value) + '\\n')
`

function runInChild (t, fn, { args = [], nodeArgs = [], env = {}, killAfterMs = KILL_AFTER_MS } = {}) {
  const source = `${PRELUDE};(${fn})({ Fastify, get lightTrace () { return require(${JSON.stringify(ROOT)}) }, say, root: ${JSON.stringify(ROOT)} }, ...${JSON.stringify(args)})`
  const file = path.join(t.testdir({ [`child-${++children}.js`]: source }), `child-${children}.js`)
  const process_ = spawn(process.execPath, [...nodeArgs, file], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const out = new Lines(process_.stdout)
  let stderr = ''
  process_.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
  const timer = setTimeout(() => process_.kill('SIGKILL'), killAfterMs)
  t.teardown(() => process_.kill('SIGKILL'))
  return {
    pid: process_.pid,
    kill: (signal) => process_.kill(signal),
    /** Resolves to its next message. */
    said: () => out.next(),
    exit: new Promise((resolve) => {
      process_.on('exit', (code, signal) => {
        clearTimeout(timer)
        process_.once('close', () => resolve({ code, signal, said: out.all, stderr }))
      })
    })
  }
}

class Lines {
  all = []
  #taken = 0
  #rest = ''
  #waiting = []

  constructor (stream) {
    stream.setEncoding('utf8').on('data', (text) => {
      const lines = (this.#rest + text).split('\n')
      this.#rest = lines.pop()
      for (const line of lines) this.all.push(parse(line))
      this.#wake(false)
    })
    stream.on('close', () => this.#wake(true))
  }

  next () {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#wake(false)
    })
  }

  #wake (isOver) {
    while (this.#waiting.length > 0 && this.#taken < this.all.length) this.#waiting.shift().resolve(this.all[this.#taken++])
    if (isOver) for (const { reject } of this.#waiting.splice(0)) reject(new Error('the child has exited and sends no more messages'))
  }
}

function parse (line) {
  try {
    return JSON.parse(line)
  } catch {
    return line
  }
}
