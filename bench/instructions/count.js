'use strict'

// One process of one case under callgrind: warmed up, then windows of requests, each with a profile of its own.
//
// V8 is made deterministic, and compiles on the one thread there is: what differs from one process to the next is when
// the kernel hands over bytes, and which request finds a timer due.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { ask } = require('../run/ipc')
const { start, stop } = require('../run/processes')
const { spawnPinned } = require('../run/pinning')
const { environmentOf } = require('../run/run')
const { plausible } = require('../run/find-faults')
const { expectedAnswers } = require('../routes')
const { readProfile, KINDS } = require('./callgrind')
const { readSymbols, nameFunctions } = require('./symbols')

const V8_FLAGS = ['--predictable', '--single-threaded', '--hash-seed=1', '--random-seed=1']
// Only what is in no file may have changed since it ran: to ask of Node's own code too makes a start half as long again.
const CALLGRIND = ['--tool=callgrind', '--smc-check=all-non-file', '--instr-atstart=no']
// For cases that say `isCollected: false`: few collections of the young generation, and one major one, early in the warm-up. It has
// V8 give up all code for classes of which no object is alive, some hundred functions: where it came by itself, into one case's
// window and not into another's, a request took 30,000 more for the next 20,000 requests.
const FEW_COLLECTIONS = ['--min-semi-space-size=64', '--max-semi-space-size=64', '--initial-old-space-size=1024', '--expose-gc']
const COLLECTED_AFTER = 0.25 // of the warm-up
const GIVEN_UP = '[bailout (kind: ' // in the line of --trace-deopt
const ANSWER_MS = 15 * 60_000
// Under valgrind a request takes some thirty times as long, on a busy machine more. A flush timer that runs on the wall's
// clock would send as many times more often for each request, and each time costs: what is counted would be the machine's
// load. So that it fires as often per request as without valgrind, or less: what is full is sent all the same, and the rest
// when the count ends.
const SLOW_TIMERS = {
  OTEL_BSP_SCHEDULE_DELAY: '600000',
  // No timer collects metrics: the flush at the end of a window does, once, as in a service that answers a window's requests a minute.
  OTEL_METRIC_EXPORT_INTERVAL: '3600000',
  LIGHT_TRACE_SLOW_AFTER_MS: '3600000', // no request is slow by this clock
  LIGHT_TRACE_COUNTED: 'valgrind' // for server.js: a collector that is down is asked more rarely
}

// Of a case that is counted in turns: rounds of windows, and of slices of its warm-up.
const ROUNDS = 8
const WARM_UP_ROUNDS = 10
const SERVER_SPANS = 1 // of a request whose call has none

module.exports = { countProcess, startCounted, sendRequests, V8_FLAGS }

/**
 * @param {object} testCase of cases.js
 * @param {{ binary: string, root: string, load, sink, down: number, warmUp: number, requests: number, windows: number, rounds?: number,
 *   functions?: boolean, isTraced?: boolean }} options isTraced: what V8 gives up is counted
 * @returns {Promise<{ windows: object[], functions: Map | null, spans: object | null, runtime: string, deoptimisations: number | null }>}
 *   instructions per request: { total, javascript, builtins, gc, native, compiler } of each window; by function of the last one
 */
async function countProcess (testCase, options) {
  const { windows, rounds = ROUNDS, functions = false, isTraced = false } = options
  const isInTurns = testCase.turns !== undefined
  const requests = isInTurns ? Math.ceil(options.requests / rounds) : Math.max(options.requests, testCase.requests)
  const warmUp = Math.min(options.warmUp, testCase.warmUp)
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-callgrind-'))
  const profile = path.join(folder, 'profile')
  const flags = [...functions ? ['--perf-basic-prof', `--perf-basic-prof-path=${folder}`] : [], ...isTraced ? ['--trace-deopt'] : []]
  const server = await startCounted(testCase, options, ['valgrind', ...CALLGRIND, `--callgrind-out-file=${profile}`], flags)
  let printed = ''
  if (isTraced) server.stdout.on('data', (text) => { printed += text })
  try {
    if (isInTurns) await warmUpInTurns(server, testCase, options, warmUp)
    else await warmUpOnce(server, testCase, options, warmUp)
    const order = isInTurns ? inTurns(testCase.turns, rounds) : Array(windows).fill(null)
    const spans = []
    for (const state of order) {
      if (state !== null) await ask(server, 'listen', state)
      const before = await ask(server, 'flush', undefined, ANSWER_MS)
      control(server, '--instr=on')
      await sendRequests(server, testCase, options, requests)
      const after = await ask(server, 'flush', undefined, ANSWER_MS)
      control(server, '--instr=off')
      control(server, '--dump')
      spans.push(spansBetween(state === null || state === 'spans' ? testCase : { ...testCase, spans: testCase.spansAt?.(state) ?? SERVER_SPANS }, before, after, requests))
    }
    const profiles = order.map((_, i) => readProfile(`${profile}.${i + 1}`))
    const symbolsThere = functions ? readSymbols(folder) : null
    const named = (i) => functions ? nameFunctions(profiles.at(i).functions, symbolsThere, requests) : null
    return {
      runtime: server.ready.runtime,
      windows: profiles.map((profile, i) => ({ state: order[i], ...perRequest(profile, requests, testCase) })),
      functions: named(isInTurns ? order.lastIndexOf(testCase.turns[1]) : -1),
      functionsBefore: isInTurns ? named(order.lastIndexOf(testCase.turns[0])) : null,
      spans: spans.includes(null) ? null : sumOf(spans),
      deoptimisations: isTraced ? printed.split(GIVEN_UP).length - 1 : null
    }
  } finally {
    await stop(server)
    fs.rmSync(folder, { recursive: true })
  }
}

// What is sent once a minute is sent in between: V8 gives functions up when they meet its socket, and is to have compiled them again.
async function warmUpOnce (server, testCase, options, requests) {
  const first = Math.ceil(requests * (testCase.isCollected ? 0.5 : COLLECTED_AFTER))
  await sendRequests(server, testCase, options, first)
  await ask(server, 'flush', undefined, ANSWER_MS)
  if (!testCase.isCollected) await ask(server, 'collect', undefined, ANSWER_MS)
  await sendRequests(server, testCase, options, requests - first)
}

// What V8 compiles, it compiles for both.
async function warmUpInTurns (server, testCase, options, requests) {
  for (const [i, state] of inTurns(testCase.turns, WARM_UP_ROUNDS).entries()) {
    if (i === WARM_UP_ROUNDS * testCase.turns.length * COLLECTED_AFTER) await ask(server, 'collect', undefined, ANSWER_MS)
    await ask(server, 'listen', state)
    await sendRequests(server, testCase, options, Math.ceil(requests / WARM_UP_ROUNDS / testCase.turns.length))
    await ask(server, 'flush', undefined, ANSWER_MS)
  }
}

// a b b a a b b a …: what drifts does it to both alike.
function inTurns (turns, rounds) {
  return Array.from({ length: rounds }, (_, i) => i % 2 === 0 ? turns : [...turns].reverse()).flat()
}

/** Starts a case's server behind `command`, a list of words that Node's own follow. */
function startCounted (testCase, { binary, flags: nodeFlags = [], root, sink, down }, command, flags = []) {
  const [file, ...args] = [...command, binary, ...nodeFlags, ...V8_FLAGS, ...(testCase.isCollected ? [] : FEW_COLLECTIONS), ...flags, path.join(__dirname, 'server.js')]
  const env = { ...environmentOf(testCase, sink, down), ...(command[0] === 'valgrind' && SLOW_TIMERS), LIGHT_TRACE_ROOT: root }
  return start(spawnPinned('counted', file, args, { env, title: testCase.name }), ANSWER_MS)
}

/** One connection, one request at a time, unless the case has more: nothing depends on how the two processes happen to interleave. */
function sendRequests (server, { route, headers, isFresh, pipelining, connections: ofCase }, { load }, requests, connections = ofCase) {
  const [request] = expectedAnswers(route)
  return ask(load, 'slice', { ...request, headers: { ...request.headers, ...headers }, port: server.ready.port, isFresh, requests, connections, pipelining }, ANSWER_MS)
}

function control (server, command) {
  execFileSync('callgrind_control', [command, String(server.pid)], { stdio: 'ignore' })
}

function perRequest (profile, requests, { isCollected }) {
  const counted = Object.fromEntries(['total', ...KINDS, 'compiler'].map((kind) => [kind, profile[kind] / requests]))
  if (!isCollected) counted.total -= counted.gc
  return counted
}

// A case that loses one, or makes more or fewer than it should, is no figure.
function spansBetween ({ name, delivers, spans }, before, after, requests) {
  if (before === null) return null
  const counted = { requests, created: after.created - before.created, delivered: after.delivered - before.delivered }
  const isWrong = delivers && (!plausible(spans, counted.created, requests) || counted.delivered !== counted.created)
  if (isWrong) throw new Error(`invalid: ${name} made ${counted.created} spans for ${requests} requests and delivered ${counted.delivered}`)
  return counted
}

function sumOf (spans) {
  const sum = (key) => spans.reduce((total, counted) => total + counted[key], 0)
  return { requests: sum('requests'), created: sum('created'), delivered: sum('delivered') }
}
