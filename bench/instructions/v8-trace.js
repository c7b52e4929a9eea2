'use strict'

// What V8 does with a case's code during warm-up: which functions it compiles, which it deoptimises and why (--trace-opt
// --trace-deopt). Also measures how many bytes a request allocates, and how many survive a collection. Uses the deterministic V8 of
// npm run bench:instructions, without valgrind.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { ask } = require('../run/ipc')
const { stop } = require('../run/processes')
const { median } = require('../run/statistics')
const { startCounted, sendRequests } = require('./count')
const { readSymbols } = require('./symbols')

const TRACE = ['--trace-opt', '--trace-deopt', '--perf-basic-prof']
// Large enough for everything that the counted requests allocate, so that no collection happens in between.
const ROOMY = ['--expose-gc', '--min-semi-space-size=512', '--max-semi-space-size=512']

// Only young-generation collections, each with the same amount of garbage.
const STEADY = ['--trace-gc-nvp', '--min-semi-space-size=16', '--max-semi-space-size=16']
const CONNECTIONS = 50
const SURVIVED = / gc=s .* new_space_survived=(\d+) /

const COMPILED = /^\[completed compiling .*\(target /
const GIVEN_UP = /^\[bailout \(kind: ([^,]+), reason: (.+?)\): begin\. deoptimizing .*<JSFunction ([^(]*?) ?\(sfi.*, pc (0x[0-9a-f]+)\]/

module.exports = { traceCase, allocationOf, survivorsOf, CONNECTIONS }

/** @returns {Promise<{ runtime: string, compiled: number, deoptimised: { name: string, ours: boolean, reason: string }[] }>} over the whole life of a process */
async function traceCase (testCase, options) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-v8-'))
  const { runtime, lines } = await printedBy(testCase, options, [...TRACE, `--perf-basic-prof-path=${folder}`])
  const symbols = readSymbols(folder)
  fs.rmSync(folder, { recursive: true })
  return { runtime, ...readTrace(lines, symbols) }
}

/**
 * Everything that a server prints, from its start through the warm-up until it is stopped.
 * @returns {Promise<{ runtime: string, lines: string[] }>}
 */
async function printedBy (testCase, options, flags, connections = 1) {
  const server = await startCounted(testCase, options, [], flags)
  let text = ''
  server.stdout.on('data', (piece) => { text += piece })
  const closed = once(server.stdout, 'close')
  await sendRequests(server, testCase, options, options.settle, connections)
  await ask(server, 'flush')
  await stop(server)
  await closed
  return { runtime: server.ready.runtime, lines: text.split('\n') }
}

function readTrace (lines, symbols) {
  const deoptimised = []
  for (const line of lines) {
    const found = GIVEN_UP.exec(line)
    if (found === null) continue
    const [, kind, reason, name, pc] = found
    const symbol = symbolAt(symbols, Number.parseInt(pc, 16), name)
    deoptimised.push({ name: symbol, ours: symbol.includes(' light-trace/'), reason: kind === 'deopt-lazy' ? `lazily, ${reason}` : reason })
  }
  return { compiled: lines.filter((line) => COMPILED.test(line)).length, deoptimised }
}

// V8 reuses memory for other code, so the name has to match too.
function symbolAt (symbols, address, name) {
  return symbols.findLast(({ start, end, name: known }) => address >= start && address < end && known.includes(name))?.name ?? name
}

/** @returns {Promise<{ bytes: number, micros: number }>} heap bytes allocated and CPU time, per request, after the warm-up */
async function allocationOf (testCase, options) {
  const server = await startCounted(testCase, options, [], ROOMY)
  try {
    await sendRequests(server, testCase, options, options.settle)
    await ask(server, 'flush')
    const before = { ...await ask(server, 'collect'), ...await ask(server, 'figures') }
    await sendRequests(server, testCase, options, options.requests)
    const after = { ...await ask(server, 'memory'), ...await ask(server, 'figures') }
    return {
      bytes: (after.heapUsed - before.heapUsed) / options.requests,
      micros: (after.user + after.system - before.user - before.system) / options.requests
    }
  } finally {
    await stop(server)
  }
}

/**
 * @returns {Promise<{ survivors: number }>} bytes that survive a young-generation collection: the median over the second half of the
 *   collections
 */
async function survivorsOf (testCase, options) {
  const { lines } = await printedBy(testCase, options, STEADY, CONNECTIONS)
  const survived = lines.map((line) => SURVIVED.exec(line)).filter((found) => found !== null).map(([, bytes]) => Number(bytes))
  return { survivors: median(survived.slice(survived.length / 2)) }
}
