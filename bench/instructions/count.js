'use strict'

// Runs one process of one case under callgrind: a warm-up, then windows of requests, each with its own profile.
//
// V8 is deterministic and compiles on its only thread. What still varies between processes is when the kernel delivers bytes, and
// which request a timer fires in.

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
// Checks for self-modifying code only in memory that is not mapped from a file: including Node's own code makes a start take half as
// long again.
const CALLGRIND = ['--tool=callgrind', '--smc-check=all-non-file', '--instr-atstart=no']
// For cases with `isCollected: false`: few young-generation collections, and one major collection, early in the warm-up. A major
// collection makes V8 discard all code for classes that have no live objects, a hundred functions or so. When it happened by itself in
// one case's window and not in the other's, a request took 30,000 more instructions for the next 20,000 requests.
const FEW_COLLECTIONS = ['--min-semi-space-size=64', '--max-semi-space-size=64', '--initial-old-space-size=1024', '--expose-gc']
const COLLECTED_AFTER = 0.25 // of the warm-up
const GIVEN_UP = '[bailout (kind: ' // in a line printed by --trace-deopt
const ANSWER_MS = 15 * 60_000
// Under valgrind a request takes about thirty times as long, and more on a busy machine. A flush timer that runs on wall-clock time
// would then fire that many times more often per request, each time at a cost, and the count would depend on the machine's load. These
// intervals make timers fire no more often per request than without valgrind. Full chunks are still sent at once, and the rest is sent
// when the count ends.
const SLOW_TIMERS = {
  OTEL_BSP_SCHEDULE_DELAY: '600000',
  // Metrics are collected once per window, by the flush at its end and not by a timer. That matches a service that answers a window's
  // requests in a minute.
  OTEL_METRIC_EXPORT_INTERVAL: '3600000',
  LIGHT_TRACE_SLOW_AFTER_MS: '3600000', // by this clock no request is slow
  LIGHT_TRACE_COUNTED: 'valgrind' // read by server.js, which then slows down retries to a collector that is down
}

// For a case counted in turns: rounds of windows, and of warm-up slices.
const ROUNDS = 8
const WARM_UP_ROUNDS = 10
const SERVER_SPANS = 1 // per request, in windows where the call has no span

module.exports = { countProcess, startCounted, sendRequests, V8_FLAGS }

/**
 * @param {object} testCase of cases.js
 * @param {{ binary: string, root: string, load, sink, down: number, warmUp: number, requests: number, windows: number, rounds?: number,
 *   functions?: boolean, isTraced?: boolean }} options isTraced: count the deoptimisations
 * @returns {Promise<{ windows: object[], functions: Map | null, spans: object | null, runtime: string, deoptimisations: number | null }>}
 *   windows: instructions per request, { total, javascript, builtins, gc, native, compiler }; functions: those of the last window
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

// Flushes in the middle, because metrics would otherwise first be sent after the warm-up. V8 deoptimises functions when they first meet
// that socket, and needs time to compile them again.
async function warmUpOnce (server, testCase, options, requests) {
  const first = Math.ceil(requests * (testCase.isCollected ? 0.5 : COLLECTED_AFTER))
  await sendRequests(server, testCase, options, first)
  await ask(server, 'flush', undefined, ANSWER_MS)
  if (!testCase.isCollected) await ask(server, 'collect', undefined, ANSWER_MS)
  await sendRequests(server, testCase, options, requests - first)
}

// Alternates during the warm-up too, so that V8 compiles for both states.
async function warmUpInTurns (server, testCase, options, requests) {
  for (const [i, state] of inTurns(testCase.turns, WARM_UP_ROUNDS).entries()) {
    if (i === WARM_UP_ROUNDS * testCase.turns.length * COLLECTED_AFTER) await ask(server, 'collect', undefined, ANSWER_MS)
    await ask(server, 'listen', state)
    await sendRequests(server, testCase, options, Math.ceil(requests / WARM_UP_ROUNDS / testCase.turns.length))
    await ask(server, 'flush', undefined, ANSWER_MS)
  }
}

// a b b a a b b a …: drift affects both equally.
function inTurns (turns, rounds) {
  return Array.from({ length: rounds }, (_, i) => i % 2 === 0 ? turns : [...turns].reverse()).flat()
}

/** Starts a case's server under `command`, a list of words that precede Node's command line. */
function startCounted (testCase, { binary, flags: nodeFlags = [], root, sink, down }, command, flags = []) {
  const [file, ...args] = [...command, binary, ...nodeFlags, ...V8_FLAGS, ...(testCase.isCollected ? [] : FEW_COLLECTIONS), ...flags, path.join(__dirname, 'server.js')]
  const env = { ...environmentOf(testCase, sink, down), ...(command[0] === 'valgrind' && SLOW_TIMERS), LIGHT_TRACE_ROOT: root }
  return start(spawnPinned('counted', file, args, { env, title: testCase.name }), ANSWER_MS)
}

/** One connection with one request at a time, unless the case asks for more, so that the two processes cannot interleave differently. */
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

// Rejects a case that loses spans, or makes more or fewer than expected: its count is not valid.
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
