'use strict'

// The time to require and register each tool over Fastify alone, in fresh processes, in turns.

const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { spread } = require('./statistics')
const { pinned } = require('./pinning')

const ROUNDS = 9

module.exports = measureStartup

// cases: entries of cases.js, the first is what the others are compared with → { name: { totalMs, overMs } }
function measureStartup (cases, node) {
  const times = new Map(cases.map(({ name }) => [name, []]))
  for (const testCase of cases) startOnce(testCase, node) // the file cache is warm for all
  for (let round = 0; round < ROUNDS; round++) {
    for (const testCase of cases) times.get(testCase.name).push(startOnce(testCase, node))
  }
  const base = times.get(cases[0].name)
  return Object.fromEntries(cases.map(({ name }) => [name, {
    totalMs: spread(times.get(name)),
    overMs: spread(times.get(name).map((time, round) => time - base[round]))
  }]))
}

function startOnce ({ setup, options }, node) {
  const script = path.join(__dirname, '../server/startup.js')
  const env = { ...process.env, OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none', DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false', DD_TRACE_STARTUP_LOGS: 'false', LIGHT_TRACE_BENCH: JSON.stringify({ setup, options }) }
  const [file, ...args] = pinned ? ['taskset', '-c', '0', node, script] : [node, script]
  return Number(execFileSync(file, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000 }))
}
