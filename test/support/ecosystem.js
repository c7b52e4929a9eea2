'use strict'

// Shared by the apps of test/ecosystem: a collector, and programs that send their spans to it. Their tests run in .ecosystem/<group>/, so
// they require this file as '../../test/support/ecosystem.js'.

const { spawn } = require('node:child_process')
const { docsCode } = require('./docs-code')
const { startSink: openSink } = require('./otlp-sink')

const DEADLINE_MS = 60_000

/** A collector for a node:test test. See ./otlp-sink.js. */
async function startSink (t) {
  const sink = await openSink()
  t.after(() => sink.close())
  return sink
}

/**
 * Starts a program that sends its spans to `sink`. When the test ends, the program and all processes that it started are killed.
 * @param {{ after: Function }} t
 * @param {string[]} command the program and its arguments
 * @param {{ cwd: string, sink?: object, env?: object }} options
 * @returns {{ pid: number, says: (pattern: RegExp) => Promise<RegExpExecArray>, text: () => string, kill: (signal: string) => void,
 *   ended: Promise<number | string> }} says: resolves when the output matches; ended: its exit code, or the signal that ended it
 */
function startProgram (t, [command, ...args], { cwd, sink, env = {} }) {
  const own = { ...cleanEnvironment(), ...(sink === undefined ? { OTEL_TRACES_EXPORTER: 'none' } : { OTEL_EXPORTER_OTLP_ENDPOINT: new URL(sink.url).origin }), ...env }
  const child = spawn(command, args, { cwd, env: own, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  let isOver = false
  const waiting = new Set()
  const look = () => { for (const wait of waiting) wait() }
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => { text += piece; look() })
  const ended = new Promise((resolve) => {
    child.once('error', (error) => { text += error.message; resolve(-1) })
    child.once('close', (code, signal) => resolve(code ?? signal))
  }).finally(() => { isOver = true; look() })
  t.after(() => { if (!isOver) endGroup(child.pid) })
  return {
    pid: child.pid,
    text: () => text,
    kill: (signal) => child.kill(signal),
    ended,
    says: (pattern) => new Promise((resolve, reject) => {
      const give = (how, value) => { clearTimeout(timer); waiting.delete(wait); how(value) }
      const timer = setTimeout(() => give(reject, new Error(`${pattern} was not printed in ${DEADLINE_MS} ms: ${text}`)), DEADLINE_MS)
      const wait = () => {
        const match = pattern.exec(text)
        if (match !== null) give(resolve, match)
        else if (isOver) give(reject, new Error(`${pattern} was not printed: ${text}`))
      }
      waiting.add(wait)
      wait()
    })
  }
}

/** Runs a program until it ends. */
async function runProgram (t, command, options) {
  const program = startProgram(t, command, options)
  const timer = setTimeout(() => endGroup(program.pid), DEADLINE_MS * 3)
  const code = await program.ended
  clearTimeout(timer)
  return { code, text: program.text() }
}

function endGroup (pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error // it has already ended
  }
}

// Without the variables of OpenTelemetry and of test runners.
function cleanEnvironment () {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:OTEL_|NODE_TEST_|NODE_OPTIONS$|LIGHT_TRACE_)/.test(name)))
}

module.exports = { startSink, startProgram, runProgram, docsCode }
