'use strict'

// One autocannon run. Four things differ from its command line:
// - connections are drained, not cut: when the time is over every request that is out is still
//   answered, so that requests, spans created and spans received can be compared one to one;
// - latencies are kept in microseconds, autocannon's own histogram in whole milliseconds;
// - in a body {n} stands for a number that never comes again, as in slices.js;
// - a fixed rate is spread evenly (see pacer.js); autocannon sends each second's share in one burst.

const autocannon = require('autocannon')
const { createHistogram } = require('node:perf_hooks')
const startPacer = require('./pacer')

const SAMPLE_MS = 50 // autocannon notices the end of a run at its next sample

module.exports = runLoad

// { url, requests, headers, connections, pipelining, seconds, rate } → figures. rate in requests per second, 0: as fast as it goes.
async function runLoad ({ url, requests, headers, connections, pipelining, seconds, rate = 0 }) {
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
  const pacer = rate ? startPacer(clients, rate, pipelining) : null
  setTimeout(drain, seconds * 1000)

  const result = await run
  const cpu = process.cpuUsage(cpuBefore)
  const elapsed = Number(drained - started) / 1e9
  return {
    requests: result['2xx'],
    failed: result.non2xx + result.errors + result.timeouts,
    bytes: clients.reduce((sum, client) => sum + client.bytesRead, 0),
    seconds: elapsed,
    busy: (cpu.user + cpu.system) / 1e6 / elapsed,
    latencyMs: {
      p50: latency.percentile(50) / 1000,
      p99: latency.percentile(99) / 1000,
      p999: latency.percentile(99.9) / 1000,
      max: latency.max / 1000
    },
    behind: pacer ? pacer.behind() : 0
  }

  function setupClient (client) {
    const send = client._doRequest
    client.answered = 0
    client.bytesRead = 0
    client.lateMicros = 0
    client.sendNow = () => send.call(client)
    client._doRequest = () => {
      if (draining) drainClient(client)
      else if (rate === 0) send.call(client)
    }
    client.on('response', (status, bytes, ms) => {
      client.answered++
      client.bytesRead += bytes
      latency.record(Math.max(1, Math.round(ms * 1000 + client.lateMicros)))
    })
    clients.push(client)
  }

  function drain () {
    draining = true
    if (pacer) pacer.stop()
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
