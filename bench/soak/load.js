'use strict'

// Sends requests at a fixed rate from its own process, each to the traced server and to the bare one, and compares each response with
// the expected one. Latency counts from when a request was due, not from when it could be sent.

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

const { ports, perSecond } = JSON.parse(process.argv[2])
const targets = Object.entries(ports).map(([name, port]) => ({
  name,
  port,
  agent: new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS }),
  phases: new Map(), // name → latencies in ms
  served: 0,
  failed: 0,
  wrong: 0,
  examples: []
}))
let phase = 'start'
let sent = 0
let open = 0
let isStopping = false

const startedAt = performance.now()
const timer = setInterval(() => {
  if (isStopping) return open === 0 && finish()
  const due = (performance.now() - startedAt) * perSecond / 1000
  for (; sent < due; sent++) {
    // Takes turns, so that neither server always goes first.
    const first = sent % 2
    send(targets[first], sent, startedAt + sent * 1000 / perSecond)
    send(targets[1 - first], sent, startedAt + sent * 1000 / perSecond)
  }
}, TICK_MS)

process.on('message', (message) => {
  if (message.phase !== undefined) phase = message.phase
  if (message.stop) isStopping = true
})

function send (target, n, dueAt) {
  const { method = 'GET', path, send: bodyOf, status, body } = REQUESTS[n % REQUESTS.length]
  const during = phase
  open++
  const toSend = bodyOf?.(n)
  const headers = toSend === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(toSend) }
  const request = http.request({ host: '127.0.0.1', port: target.port, agent: target.agent, method, path: path(n), headers, timeout: TIMEOUT_MS }, (response) => {
    let text = ''
    response.setEncoding('utf8').on('data', (chunk) => { text += chunk }).on('end', () => {
      open--
      target.served++
      record(target, during, performance.now() - dueAt)
      if (response.statusCode === status && (body === undefined || text === body(n))) return
      target.wrong++
      note(target, `${method} ${path(n)}: ${response.statusCode} ${text.slice(0, 80)}`)
    })
  })
  request.on('timeout', () => request.destroy(new Error('timeout')))
  request.on('error', (error) => {
    open--
    target.failed++
    note(target, `${method} ${path(n)}: ${error.message}`)
  })
  request.end(toSend)
}

function record ({ phases }, name, ms) {
  if (!phases.has(name)) phases.set(name, [])
  phases.get(name).push(ms)
}

function note ({ examples }, what) {
  if (examples.length < 20) examples.push(what)
}

function finish () {
  clearInterval(timer)
  const figures = {}
  for (const { name, agent, phases, served, failed, wrong, examples } of targets) {
    agent.destroy()
    phases.delete('start')
    const byPhase = Object.fromEntries([...phases].map(([phase, latencies]) => [phase, percentiles(latencies)]))
    figures[name] = { served, failed, wrong, examples, latency: percentiles([...phases.values()].flat()), byPhase }
  }
  process.send(figures, () => process.disconnect())
}

function percentiles (latencies) {
  const sorted = Float64Array.from(latencies).sort()
  const at = (part) => Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(2))
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), p999: at(0.999) }
}
