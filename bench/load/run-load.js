'use strict'

// Runs autocannon once. Three things differ from its command line:
// - Connections are drained, not cut. When time is up, requests in flight are still answered, so that requests, spans created and
//   spans received can be compared one to one.
// - Latencies are kept in microseconds. autocannon's own histogram has whole milliseconds.
// - In a body, {n} is replaced by a number that never repeats, as in slices.js.

const autocannon = require('autocannon')
const { createHistogram } = require('node:perf_hooks')

const SAMPLE_MS = 50 // autocannon notices the end of a run at its next sample

module.exports = runLoad

// { url, requests, headers, connections, pipelining, seconds } → figures
async function runLoad ({ url, requests, headers, connections, pipelining, seconds }) {
  const latency = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 })
  const clients = []
  let draining = false
  const cpuBefore = process.cpuUsage()
  const started = process.hrtime.bigint()
  let drained = started

  const run = autocannon({
    url,
    requests: requests.map((request) => withNumber({ ...request, headers: { ...request.headers, ...headers } })),
    connections,
    pipelining,
    duration: 3600, // the drain ends the run
    timeout: 20,
    sampleInt: SAMPLE_MS,
    setupClient
  })
  setTimeout(drain, seconds * 1000)

  const result = await run
  const cpu = process.cpuUsage(cpuBefore)
  const elapsed = Number(drained - started) / 1e9
  return {
    requests: result['2xx'],
    failed: result.non2xx + result.errors + result.timeouts,
    seconds: elapsed,
    busy: (cpu.user + cpu.system) / 1e6 / elapsed,
    latencyMs: { p99: latency.percentile(99) / 1000 }
  }

  function setupClient (client) {
    const send = client._doRequest
    client.answered = 0
    client._doRequest = () => {
      if (draining) drainClient(client)
      else send.call(client)
    }
    client.on('response', (status, bytes, ms) => {
      client.answered++
      latency.record(Math.max(1, Math.round(ms * 1000)))
    })
    clients.push(client)
  }

  function drain () {
    draining = true
    for (const client of clients) drainClient(client)
  }

  function drainClient (client) {
    if (client.destroyed || client.answered < client.reqsMade) return
    drained = process.hrtime.bigint()
    client.destroy()
  }
}

let n = 0
function withNumber (request) {
  if (!request.body?.includes('{n}')) return request
  return { ...request, setupRequest: (prepared) => ({ ...prepared, body: request.body.replace('{n}', () => String(n++).padStart(8, '0')) }) }
}
