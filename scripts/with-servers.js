'use strict'

// What a suite that needs servers of its own does around its tests: opens what they need, runs a folder of tests
// against it, ends everything, and prints `N passed, N failed`. What cannot be had is a failure: who skips it would
// believe that it was tested.

module.exports = { withServers, runTests }

const { testsIn, runFiles } = require('./tests')

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
 * @param {{ folder: string, env: object, node?: string, jobs?: number, timeoutS?: number }} options folder: from the root
 */
function runTests ({ folder, ...options }) {
  const given = process.argv.slice(2)
  return runFiles(given.length > 0 ? given : testsIn(folder), options)
}
