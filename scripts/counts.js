'use strict'

// Reads the counts that a suite printed. As a command, node scripts/counts.js <its output> <its exit code> prints the two numbers.

const { readFileSync } = require('node:fs')

module.exports = { countsOf }

if (require.main === module) {
  const [log, code] = process.argv.slice(2)
  const { passed, failed } = countsOf(readFileSync(log, 'utf8'), Number(code))
  console.log(`${passed} ${failed}`)
}

/**
 * Uses the last line with `N passed, N failed`, or the last summary of tap: `# { total: 41, pass: 40, fail: 1 }`.
 * @param {string} output
 * @param {number | string} code the exit code, or the name of the signal that ended the process
 * @returns {{ passed: number, failed: number }} at least one failure if nothing was counted or the code is not 0
 */
function countsOf (output, code) {
  const line = [...output.matchAll(/^(?:\d+ passed, \d+ failed|# \{ total: .* \})$/gm)].at(-1)?.[0] ?? ''
  const count = (format) => Number(format.exec(line)?.[1] ?? 0)
  const passed = count(/(\d+) passed/) || count(/\bpass: (\d+)/)
  const failed = count(/(\d+) failed/) || count(/\bfail: (\d+)/)
  return { passed, failed: failed === 0 && (code !== 0 || passed === 0) ? 1 : failed }
}
