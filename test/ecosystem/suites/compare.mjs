// Finds the tests of a package that pass without light-trace but fail with it.
//
// First, all tests run with light-trace. Files with a failed test run again with and without it, one file at a time. So a test that
// fails only under load is not reported as a difference, and tests that pass do not run twice.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const reporter = join(import.meta.dirname, 'reporter.mjs')
const FILE_DEADLINE_MS = 120_000

/**
 * @param {{ binary: string, cwd: string, pattern: RegExp, url: string }} suite Node, the package, its test files, the collector
 * @returns {Promise<{ count: number, differences: string[] }>} differences: `file: test > its part`
 */
export async function compare ({ binary, cwd, pattern, url }) {
  const files = readdirSync(cwd, { recursive: true }).filter((file) => pattern.test(file) && !file.includes('node_modules'))
  const withIt = { NODE_OPTIONS: '--require light-trace/register', OTEL_EXPORTER_OTLP_ENDPOINT: url }
  const all = await run({ binary, cwd, files, concurrency: 2, env: withIt })
  const suspects = files.filter((file) => all.some((outcome) => outcome.file === file && !outcome.isOk))
  if (suspects.length === 0) return { count: all.length, differences: [] }
  const again = { binary, cwd, files: suspects, concurrency: 1 }
  const traced = byName(await run({ ...again, env: withIt }))
  const plain = byName(await run({ ...again, env: {} }))
  return { count: all.length, differences: [...plain].filter(([name, isOk]) => isOk && traced.get(name) !== true).map(([name]) => name) }
}

// Each file runs in its own process, so that a file that hangs is killed alone. There is no runner around it, which would need another
// process.
/** @returns {Promise<{ file: string, name: string, isOk: boolean }[]>} */
async function run ({ binary, cwd, files, concurrency, env }) {
  const outcomes = []
  const waiting = [...files]
  const work = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) outcomes.push(...await runFile({ binary, cwd, file, env }))
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return outcomes
}

async function runFile ({ binary, cwd, file, env }) {
  const { NODE_TEST_CONTEXT, ...own } = process.env // with it, the process would believe that it is a child of this one
  const report = join(mkdtempSync(join(tmpdir(), 'light-trace-suite-')), 'report') // a file, because the tests use standard output
  const child = spawn(binary, [`--test-reporter=${reporter}`, `--test-reporter-destination=${report}`, file], { cwd, env: { ...own, ...env }, stdio: 'ignore', detached: true })
  const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), FILE_DEADLINE_MS) // the group includes the processes that it has started
  const [, signal] = await once(child, 'close')
  clearTimeout(timer)
  const text = existsSync(report) ? readFileSync(report, 'utf8') : ''
  rmSync(dirname(report), { recursive: true })
  const outcomes = text.split('\n').filter((line) => line.endsWith('}')).map(JSON.parse) // the last line may be incomplete
  return [
    ...outcomes.map(({ name, isOk }) => ({ file, name: name.replaceAll(`${cwd}/`, ''), isOk })),
    { file, name: 'the file ends by itself', isOk: signal === null }
  ]
}

// Tests with the same name are counted together.
function byName (outcomes) {
  const results = new Map()
  for (const { file, name, isOk } of outcomes) {
    const full = `${file}: ${name}`
    results.set(full, isOk && results.get(full) !== false)
  }
  return results
}
