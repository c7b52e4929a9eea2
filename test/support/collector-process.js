'use strict'

// A collector in a separate process. It can be killed and started again on the same port, like a collector on the same machine that
// restarts. Each run reports the span ids that it received, how long its first request took to arrive, and how long it took to
// answer.
//
//   const collector = new CollectorProcess(t); await collector.up(); await collector.kill()

const { fork } = require('node:child_process')
const { once } = require('node:events')
const http = require('node:http')
const { freePort } = require('../../scripts/free-port')
const { decodeSpans } = require('./otlp-decode')

class CollectorProcess {
  port = 0
  ids = new Set() // of all runs
  spans = [] // { traceId, spanId, name, traceState, service } of all runs with `saysSpans`
  noticedAfterMs = [] // of each run that got a request: time from listening to the first request, by its own clock
  answeringMs = 0 // how long requests with spans waited for their answers, since the last `up`
  #child = null

  constructor (t) {
    t.teardown(() => this.kill())
  }

  get url () {
    return `http://127.0.0.1:${this.port}/v1/traces`
  }

  /** @param {{ status?: number, hang?: boolean, saysSpans?: boolean }} [how] what it does instead of accepting spans, or `saysSpans` */
  async up (how = {}) {
    if (this.port === 0) this.port = await freePort()
    this.answeringMs = 0
    // tap adds its own NODE_OPTIONS to every process that is spawned.
    this.#child = fork(__filename, [String(this.port), JSON.stringify(how)], { env: { ...process.env, NODE_OPTIONS: '' } })
    this.#child.on('message', (message) => {
      if (message.ids !== undefined) for (const id of message.ids) this.ids.add(id)
      if (message.spans !== undefined) this.spans.push(...message.spans)
      if (message.answeringMs !== undefined) this.answeringMs += message.answeringMs
      if (message.noticedAfterMs !== undefined) this.noticedAfterMs.push(message.noticedAfterMs)
    })
    const [code] = await Promise.race([once(this.#child, 'message'), once(this.#child, 'exit')])
    if (code === null || typeof code === 'number') throw new Error(`the collector ended with ${code}: another process may have its port`)
  }

  pause () { this.#child.kill('SIGSTOP') }
  resume () { this.#child.kill('SIGCONT') }

  async kill () {
    const child = this.#child
    this.#child = null
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    // Its messages may still be on their way after it has exited. The channel disconnects after the last one.
    const gone = [once(child, 'exit'), ...(child.connected ? [once(child, 'disconnect')] : [])]
    child.kill('SIGKILL')
    await Promise.all(gone)
  }

  /** Waits until all messages that it has sent so far are here. Its HTTP answers may arrive before them. */
  async heard () {
    const child = this.#child
    const echo = new Promise((resolve) => child.on('message', ({ echo }) => { if (echo) resolve() }))
    child.send('echo')
    await echo
  }
}

function main (port, how) {
  let listeningAt
  const server = http.createServer(async (req, res) => {
    if (listeningAt !== undefined) process.send({ noticedAfterMs: performance.now() - listeningAt })
    listeningAt = undefined
    const askedAt = performance.now()
    const parts = []
    for await (const part of req) parts.push(part)
    if (how.hang) return
    if (how.status !== undefined) return res.writeHead(how.status).end()
    const decoded = decodeSpans(Buffer.concat(parts), { gzip: req.headers['content-encoding'] === 'gzip' })
    const ids = decoded.map(({ spanId }) => spanId)
    const spans = how.saysSpans ? decoded.map(({ traceId, spanId, name, traceState, resource }) => ({ traceId, spanId, name, traceState, service: resource['service.name'] })) : undefined
    // Sends the message before it answers. So all spans that were answered are known here, even if it is killed right after the answer.
    process.send({ ids, spans, answeringMs: performance.now() - askedAt }, () => res.end())
  })
  server.keepAliveTimeout = 60_000
  server.listen(port, '127.0.0.1', () => {
    listeningAt = performance.now()
    process.send({ listening: true })
  })
  process.on('message', () => process.send({ echo: true }))
  process.on('disconnect', () => process.exit())
}

if (require.main === module) main(Number(process.argv[2]), JSON.parse(process.argv[3]))
else module.exports = { CollectorProcess }
