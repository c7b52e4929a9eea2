'use strict'

// The time to require and register each tool over Fastify alone, in fresh processes, in turns.
//
// A start is disturbed by whatever else the machine does, and never sped up by it. So the fastest third of the
// starts of each case is compared, the fastest with Fastify's fastest, the second with its second, and so on.

const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { makeFloors } = require('./startup-floors')
const { spread } = require('./statistics')
const { pinned } = require('./pinning')

const ROUNDS = 18
// Who takes so many times as long as Fastify alone is measured well enough by every second round.
const SLOW = 1.8
const SLOW_EVERY = 2
const OURS = 'lighttrace-100'

const FIGURES = ['requireMs', 'registerMs', 'totalMs', 'cpuMs']

module.exports = { measureStartup, faster, overBase }

/**
 * @param {object[]} cases of cases.js; the first is what the others are compared with
 * @param {string} node
 * @returns {{ version: string, startup: { [name: string]: object } }} of each case label, starts and files; the spread
 *   of each of FIGURES, and under `over` that of its difference to the first case's; there `share` is in parts of the
 *   first one's total
 */
function measureStartup (cases, node) {
  const [base] = cases
  const ours = cases.find(({ name }) => name === OURS)
  const { version, files } = startOnce(base, node, true)
  const alone = new Set(files)
  const bench = path.join(__dirname, '..', path.sep)
  const floors = makeFloors(startOnce(ours, node, true).files.filter((file) => !alone.has(file) && !file.startsWith(bench)))
  try {
    return { version, startup: measure([...cases, ...floors.cases], node) }
  } finally {
    floors.remove()
  }
}

function measure (cases, node) {
  const starts = new Map(cases.map((testCase) => [testCase, []]))
  const [base, ...others] = cases.map((testCase) => startOnce(testCase, node).totalMs) // the file cache is warm for all
  const isSlow = [false, ...others.map((ms) => ms > SLOW * base)]
  for (let round = 0; round < ROUNDS; round++) {
    cases.forEach((testCase, i) => {
      if (!isSlow[i] || round % SLOW_EVERY === 0) starts.get(testCase).push(startOnce(testCase, node))
    })
  }
  return Object.fromEntries(cases.map((testCase) => [testCase.name, summarise(testCase, starts.get(testCase), starts.get(cases[0]))]))
}

function summarise ({ label }, starts, base) {
  const of = (list, figure) => faster(list.map((start) => start[figure]))
  const over = Object.fromEntries(FIGURES.map((figure) => [figure, spread(overBase(of(starts, figure), of(base, figure)))]))
  const total = spread(of(base, 'totalMs')).median
  return {
    label,
    starts: starts.length,
    files: starts[0].files - base[0].files,
    ...Object.fromEntries(FIGURES.map((figure) => [figure, spread(of(starts, figure))])),
    over: { ...over, share: { median: over.totalMs.median / total, min: over.totalMs.min / total, max: over.totalMs.max / total } }
  }
}

/** The fastest third, in order. */
function faster (values) {
  return values.toSorted((a, b) => a - b).slice(0, Math.ceil(values.length / 3))
}

/** Like with like: where there are fewer of one, each is compared with what stands at the same part of the other. */
function overBase (values, base) {
  return values.map((value, i) => value - base[Math.floor(i * base.length / values.length)])
}

function startOnce ({ setup, options }, node, listFiles = false) {
  const script = path.join(__dirname, '../server/startup.js')
  const env = { ...process.env, OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none', DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false', DD_TRACE_STARTUP_LOGS: 'false', LIGHT_TRACE_BENCH: JSON.stringify({ setup, options, listFiles }) }
  const [file, ...args] = pinned ? ['taskset', '-c', '0', node, script] : [node, script]
  return JSON.parse(execFileSync(file, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000 }))
}
