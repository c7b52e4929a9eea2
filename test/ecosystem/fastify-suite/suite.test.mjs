// Fastify's own tests, from its package: as they are, and with light-trace preloaded and a collector that takes its spans. The
// same tests pass. What is known to differ stands in known-differences.json with its reason, and anything else fails.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'

const here = import.meta.dirname
const fastify = join(here, 'node_modules', 'fastify')
const known = JSON.parse(readFileSync(join(here, 'known-differences.json'), 'utf8'))
const TESTS_MIN = 2000 // fewer: the suite was not found, and nothing was compared
const DEADLINE_MS = 8 * 60_000

test('Fastify’s own tests pass with light-trace as without it', { timeout: 2 * DEADLINE_MS }, async (t) => {
  const { url, spans, close } = await startCollector()
  t.after(close)
  const plain = await runSuite({})
  const traced = await runSuite({ NODE_OPTIONS: '--require light-trace/register', OTEL_EXPORTER_OTLP_ENDPOINT: url })
  assert.ok(plain.size > TESTS_MIN, `${plain.size} tests were run`)
  assert.ok(spans() > 0, 'and were traced')

  const differences = [...plain].filter(([name, isOk]) => isOk && traced.get(name) !== true).map(([name]) => name)
  t.diagnostic(`${plain.size} tests, ${differences.length} differ`)
  const tests = known.map(({ test }) => test)
  assert.deepEqual(differences.filter((name) => !isKnown(name, tests)), [], 'no other difference than the known ones')
  assert.deepEqual(tests.filter((name) => !differences.includes(name)), [], 'and each known one is still there')
})

// With a test those that it is part of have failed too.
function isKnown (name, tests) {
  return tests.some((test) => test === name || test.startsWith(`${name} > `))
}

/** @returns {Promise<Map<string, boolean>>} a test's file and name → whether it passed */
function runSuite (env) {
  const files = readdirSync(join(fastify, 'test'), { recursive: true }).filter((file) => file.endsWith('.test.js')).map((file) => join('test', file))
  const args = ['--test', '--test-concurrency=2', `--test-reporter=${join(here, 'reporter.mjs')}`, ...files]
  const { NODE_TEST_CONTEXT, ...own } = process.env // with it a runner believes that it is this one's child
  const child = spawn(process.execPath, args, { cwd: fastify, env: { ...own, ...env }, stdio: ['ignore', 'pipe', 'ignore'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS)
  const pieces = []
  child.stdout.on('data', (piece) => pieces.push(piece))
  return new Promise((resolve) => child.once('close', () => {
    clearTimeout(timer)
    resolve(outcomes(Buffer.concat(pieces).toString()))
  }))
}

function outcomes (lines) {
  const results = new Map()
  for (const line of lines.split('\n').filter((line) => line.startsWith('{'))) {
    const { isOk, file, name } = JSON.parse(line)
    const own = file?.startsWith(fastify) ? file.slice(fastify.length + 1) : file
    const full = `${own}: ${name.replaceAll(`${fastify}/`, '')}`
    results.set(full, isOk && results.get(full) !== false) // tests of one name count together
  }
  return results
}

async function startCollector () {
  let bytes = 0
  const server = createServer((request, response) => {
    request.on('data', (piece) => { bytes += piece.length })
    request.on('end', () => response.end())
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, spans: () => bytes, close: () => { server.closeAllConnections(); server.close() } }
}
