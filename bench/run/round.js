'use strict'

// One measurement of one case: checks the responses, runs the load, flushes, compares the counts of server and sink.

const { setTimeout: sleep } = require('node:timers/promises')
const { ask } = require('./ipc')
const { freeze, thaw } = require('./processes')
const { routes, expectedAnswers } = require('../routes')
const findFaults = require('./find-faults')

const FLUSH_MS = 20_000
const SETTLE_MS = 3000
const SERVER_SETTLE_MS = 250

module.exports = { measure, load, FLUSH_MS }

// → the round's figures; `faults` is empty for a valid round
async function measure ({ testCase, server, loader, sink }, profile) {
  thaw(server)
  try {
    await probe(testCase, server)
    await flushEarlier(server)
    await ask(sink, 'expect')
    const before = await ask(server, 'begin')
    const sent = await load({ testCase, server, loader }, profile)
    const after = await ask(server, 'end', { flushMs: FLUSH_MS, settleMs: SERVER_SETTLE_MS })
    const received = await settled(sink, created(before, after) - notDelivered(before, after))
    const check = await ask(sink, 'check', expectation(testCase))
    const counts = difference(before.counts, after.flushed.counts)
    return {
      ...figures(before, after, sent),
      spans: { ...counts, received: received.spans, receivedBytes: received.bytes },
      faults: findFaults({ testCase, sent, counts, received, check })
    }
  } finally {
    freeze(server)
  }
}

function load ({ testCase, server, loader }, { connections, pipelining, seconds }) {
  const { requests } = routes[testCase.route ?? 'hello']
  return ask(loader, 'run', {
    url: `http://127.0.0.1:${server.ready.port}`,
    requests,
    headers: testCase.headers,
    connections,
    pipelining,
    seconds
  }, seconds * 1000 + 60_000)
}

async function probe (testCase, server) {
  for (const { method, path, headers, body, status, answer } of expectedAnswers(testCase.route ?? 'hello')) {
    const response = await fetch(`http://127.0.0.1:${server.ready.port}${path}`, { method, headers: { ...headers, ...testCase.headers }, body })
    const text = await response.text()
    if (response.status !== status || text !== answer) {
      throw new Error(`${testCase.name}: ${method} ${path} answered ${response.status} ${text}`)
    }
  }
}

// Flushes the spans of the probe and of earlier rounds, so that they do not count in this round.
async function flushEarlier (server) {
  await ask(server, 'begin')
  await ask(server, 'end', { flushMs: FLUSH_MS })
}

function expectation (testCase) {
  const { route, status = 200 } = routes[testCase.route ?? 'hello']
  return { route, status }
}

// A flush resolves when the sink has answered. For tools without a flush, this waits until everything has arrived or time is up.
async function settled (sink, expected) {
  const deadline = performance.now() + SETTLE_MS
  for (;;) {
    const received = await ask(sink, 'received')
    if (received.spans >= expected || performance.now() > deadline) return received
    await sleep(50)
  }
}

function created (before, after) {
  return (after.flushed.counts?.created ?? 0) - (before.counts?.created ?? 0)
}

function notDelivered (before, after) {
  const counts = difference(before.counts, after.flushed.counts)
  return counts ? counts.dropped + counts.rejected + counts.waiting : 0
}

function figures (before, after, sent) {
  const cpuMicros = after.flushed.cpuMicros - before.cpuMicros
  return {
    cpuMicrosPerRequest: cpuMicros / sent.requests,
    requestsPerSecond: sent.requests / sent.seconds,
    latencyMs: sent.latencyMs,
    rssMB: after.loadEnd.rssBytes / 1e6,
    requests: sent.requests,
    serverBusy: (after.loadEnd.cpuMicros - before.cpuMicros) / 1e6 / sent.seconds,
    loadBusy: sent.busy
  }
}

function difference (before, after) {
  if (!after) return null
  const counts = {}
  for (const [key, value] of Object.entries(after)) counts[key] = typeof value === 'number' ? value - before[key] : value
  return counts
}
