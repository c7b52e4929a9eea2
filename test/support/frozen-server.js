'use strict'

// A server in a separate process that is frozen between requests, as on Vercel and Cloud Run.
//
//   const server = await startFrozen(t, 'cloud-run', { traceOptions, env })
//   await server.request('/orders/1')     thaws it, and freezes it when it has answered
//   const { code, signal, stderr } = await server.terminate()

const http = require('node:http')
const path = require('node:path')
const { spawn } = require('node:child_process')

const FIXTURES = path.join(__dirname, '../fixtures/serverless')
const THAW_EVERY_MS = 20

module.exports = { startFrozen }

async function startFrozen (t, name, { env = {}, freezesItself = false, ...options }) {
  const server = new FrozenServer(freezesItself)
  t.teardown(() => server.end())
  await server.start(path.join(FIXTURES, `${name}.js`), { ...env, FUNCTION_OPTIONS: JSON.stringify(options) })
  return server
}

class FrozenServer {
  stderr = ''
  waitedFor = 0 // number of promises that the last request passed to waitUntil
  #freezesItself
  #process = null
  #port = 0
  #onLine = null
  #exit = null

  constructor (freezesItself) {
    this.#freezesItself = freezesItself
  }

  async start (program, env) {
    this.#process = spawn(process.execPath, [program], {
      env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe']
    })
    this.#exit = new Promise((resolve) => this.#process.once('close', (code, signal) => resolve({ code, signal, stderr: this.stderr })))
    this.#process.stderr.setEncoding('utf8').on('data', (text) => { this.stderr += text })
    let rest = ''
    this.#process.stdout.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()
      for (const line of lines) this.#onLine?.(JSON.parse(line))
    })
    this.#port = (await this.#line()).port
  }

  async request (url, headers = {}) {
    const frozen = this.#freezesItself ? this.#line() : null
    // Repeated, because the process may be just about to freeze itself.
    this.#process.kill('SIGCONT')
    const thaw = setInterval(() => this.#process.kill('SIGCONT'), THAW_EVERY_MS)
    const answer = await get(this.#port, url, headers)
    clearInterval(thaw)
    if (frozen === null) this.#process.kill('SIGSTOP')
    else this.waitedFor = (await frozen).waitedFor
    return answer
  }

  /** Ends the instance as the platform does: sends the signal and gives it CPU again. */
  terminate () {
    this.#process.kill('SIGTERM')
    this.#process.kill('SIGCONT')
    return this.#exit
  }

  end () {
    this.#process?.kill('SIGKILL')
  }

  #line () {
    return new Promise((resolve, reject) => {
      this.#onLine = resolve
      this.#exit.then(() => reject(new Error(`the process is gone: ${this.stderr}`)))
    })
  }
}

function get (port, url, headers) {
  return new Promise((resolve, reject) => {
    http.get({ port, host: '127.0.0.1', path: url, headers, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text) => { body += text })
      response.on('end', () => resolve({ status: response.statusCode, body }))
    }).on('error', reject)
  })
}
