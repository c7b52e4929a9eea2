'use strict'

// Servers that V8 is done with, and slices of load on them.

const path = require('node:path')
const { ask } = require('./ipc')
const { start, freeze, thaw } = require('./processes')
const { spawnPinned } = require('./pinning')
const { environmentOf } = require('./run')
const { plausible } = require('./find-faults')
const { expectedAnswers } = require('../routes')

const SLICE_REQUESTS = 20_000
// V8 is done when its code has kept its size for so many slices; it has tried again after a whole minute without a change,
// but less than one function in a hundred.
const QUIET_SLICES = 6
const WARM_UP_SLICES_MAX = 80

module.exports = { startSettled, measureSlice, countArrived }

/**
 * A server of a case that V8 is done with, stopped until its turn comes.
 * @param {object} testCase of instructions/cases.js
 * @param {{ binary: string, root: string, load, sink, down: number, connections: number, pipelining: number, warmUpSlicesMax?: number }} options
 */
async function startSettled (testCase, options) {
  const { warmUpSlicesMax = WARM_UP_SLICES_MAX } = options
  const server = await startUnsettled(testCase, options)
  let codeBytes = 0
  let quiet = 0
  for (let slices = 0; quiet < QUIET_SLICES && slices < warmUpSlicesMax; slices++) {
    const slice = await loadSlice(testCase, server, options)
    quiet = Math.abs(slice.codeBytes - codeBytes) < codeBytes / 1000 ? quiet + 1 : 0
    codeBytes = slice.codeBytes
  }
  freeze(server)
  return server
}

/** A slice of a server's turn: CPU time of a request, user and system, in µs, requests a second, memory, size of the code. */
async function measureSlice (testCase, server, options) {
  thaw(server)
  const slice = await loadSlice(testCase, server, options)
  freeze(server)
  return slice
}

// With the sending of its spans, which has to be complete.
async function loadSlice (testCase, server, { load, sink, connections, pipelining, sliceRequests = SLICE_REQUESTS }) {
  const [{ path, answer }] = expectedAnswers(testCase.route)
  const spans = await ask(server, 'flush')
  const before = await ask(server, 'figures')
  const { requests, seconds } = await ask(load, 'slice', { port: server.ready.port, path, answer, headers: testCase.headers, requests: sliceRequests, connections, pipelining })
  const sent = await ask(server, 'flush')
  const { user, system, rss, codeBytes } = await ask(server, 'figures')
  await countArrived(testCase, sink, { requests, delivered: sent?.delivered - spans?.delivered })
  return { user: (user - before.user) / requests, system: (system - before.system) / requests, perSecond: requests / seconds, rssMB: rss / 1e6, codeBytes }
}

/**
 * Counts what has come to bench/sink/keeping.js since the last time. Throws unless it is what the server says that it has sent,
 * and as much as `requests` leave.
 */
async function countArrived (testCase, sink, { requests, delivered }) {
  const { spans, unreadable } = await ask(sink, 'count')
  if (unreadable > 0) throw new Error(`invalid: ${unreadable} requests of ${testCase.name} to the sink could not be read`)
  if (!testCase.delivers) return
  if (!plausible(testCase.spans, delivered, requests)) throw new Error(`invalid: ${testCase.name} delivered ${delivered} spans of ${requests} requests`)
  if (spans !== delivered) throw new Error(`invalid: ${testCase.name} delivered ${delivered} spans, and ${spans} have arrived`)
}

function startUnsettled (testCase, { binary, root, sink, down }) {
  const env = { ...environmentOf(testCase, sink, down), LIGHT_TRACE_ROOT: root }
  return start(spawnPinned('server', binary, [path.join(__dirname, '../instructions/server.js')], { env, title: testCase.name }))
}
