'use strict'

// What a suite that needs servers of its own does around its tests: opens what they need, runs a folder of tests
// against it, ends everything, and prints `N passed, N failed`. What cannot be had is a failure: who skips it would
// believe that it was tested.

module.exports = { withServers, runTests }

const { readdirSync } = require('node:fs')
const path = require('node:path')
const { countsOf } = require('./counts')
const { run } = require('./run')

const ROOT = path.join(__dirname, '..')
const TAP = path.join(ROOT, 'node_modules', 'tap', 'dist', 'esm', 'run.mjs')
const DEADLINE_MS = 10 * 60_000

/**
 * @param {(open: (starting: Promise<{ stop }>) => Promise) => Promise<{ passed: number, failed: number }>} body
 *   what it opens is stopped at the end, whatever happens
 */
async function withServers (body) {
  const opened = []
  const open = async (starting) => {
    const started = await starting
    opened.push(started)
    return started
  }
  let counts = { passed: 0, failed: 1 }
  try {
    counts = await body(open)
  } catch (error) {
    console.error(error.message)
  } finally {
    await Promise.all(opened.map((each) => each.stop()))
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`)
  process.exitCode = counts.failed === 0 ? 0 : 1
}

/**
 * Runs the test files of a folder, or those of the command line.
 * @param {{ folder: string, env: object, node?: string, flags?: string[] }} options folder: from the root
 */
async function runTests ({ folder, env, node = process.execPath, flags = [] }) {
  const given = process.argv.slice(2)
  const files = given.length > 0 ? given : testsIn(folder)
  const { code, output } = await run(node, [TAP, '--reporter=tap', ...flags, ...files],
    { cwd: ROOT, env: { ...process.env, ...env }, live: true, deadlineMs: DEADLINE_MS })
  return countsOf(output, code)
}

function testsIn (folder) {
  return readdirSync(path.join(ROOT, folder)).filter((name) => name.endsWith('.test.js')).map((name) => path.join(folder, name))
}
