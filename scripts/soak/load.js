'use strict'

// Requests at a fixed rate in a process of their own, each held against the answer that it must get. Latency counts
// from when a request was due, not from when there was room for it.

const http = require('node:http')

const CONNECTIONS = 40
const TICK_MS = 2
const TIMEOUT_MS = 10_000

const REQUESTS = [
  { weight: 10, path: () => '/', status: 200, body: () => '{"hello":"world"}' },
  { weight: 5, path: (n) => `/items/${n}`, status: 200, body: (n) => `{"id":"${n}"}` },
  { weight: 3, method: 'POST', path: () => '/orders', send: (n) => JSON.stringify({ n }), status: 201, body: (n) => JSON.stringify({ n }) },
  { weight: 1, method: 'POST', path: () => '/orders', send: () => '{"n":"many"}', status: 400 },
  { weight: 1, path: (n) => `/missing/${n}`, status: 404 },
  { weight: 1, path: () => '/error', status: 500 },
  { weight: 2, path: () => '/stream', status: 200, body: () => 'abc' }
].flatMap((request) => Array(request.weight).fill(request))

const { port, perSecond } = JSON.parse(process.argv[2])
const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS })
const phases = new Map() // name → latencies in ms
const wrong = []
let phase = 'start'
let sent = 0
let open = 0
let failed = 0
let isStopping = false

const startedAt = performance.now()
const timer = setInterval(() => {
  if (isStopping) return open === 0 && finish()
  const due = (performance.now() - startedAt) * perSecond / 1000
  for (; sent < due; sent++) send(sent, startedAt + sent * 1000 / perSecond)
}, TICK_MS)

process.on('message', (message) => {
  if (message.phase !== undefined) phase = message.phase
  if (message.stop) isStopping = true
})

function send (n, dueAt) {
  const { method = 'GET', path, send: bodyOf, status, body } = REQUESTS[n % REQUESTS.length]
  const during = phase
  open++
  const toSend = bodyOf?.(n)
  const headers = toSend === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(toSend) }
  const request = http.request({ host: '127.0.0.1', port, agent, method, path: path(n), headers, timeout: TIMEOUT_MS }, (response) => {
    let text = ''
    response.setEncoding('utf8').on('data', (chunk) => { text += chunk }).on('end', () => {
      open--
      record(during, performance.now() - dueAt)
      if (response.statusCode !== status || (body !== undefined && text !== body(n))) note(`${method} ${path(n)}: ${response.statusCode} ${text.slice(0, 80)}`)
    })
  })
  request.on('timeout', () => request.destroy(new Error('timeout')))
  request.on('error', (error) => {
    open--
    failed++
    note(`${method} ${path(n)}: ${error.message}`)
  })
  request.end(toSend)
}

function record (name, ms) {
  if (!phases.has(name)) phases.set(name, [])
  phases.get(name).push(ms)
}

function note (what) {
  if (wrong.length < 20) wrong.push(what)
  else wrong.length++ // counted, not kept
}

function finish () {
  clearInterval(timer)
  agent.destroy()
  const all = []
  const byPhase = {}
  for (const [name, latencies] of phases) {
    all.push(latencies)
    byPhase[name] = percentiles(latencies)
  }
  process.send({ served: sent - failed, failed, wrong: wrong.length, examples: wrong.filter(Boolean).slice(0, 20), latency: percentiles(all.flat()), byPhase }, () => process.disconnect())
}

function percentiles (latencies) {
  const sorted = Float64Array.from(latencies).sort()
  const at = (part) => Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(2))
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), p999: at(0.999) }
}
