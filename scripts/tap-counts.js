'use strict'

module.exports = { tapCounts }

/**
 * What a run of tap counted, by its own last line `# { total: 41, pass: 40, fail: 1 }`.
 * @returns {{ passed: number, failed: number }} a run that counted nothing failed once
 */
function tapCounts (output) {
  const summary = [...output.matchAll(/^# \{ (total: .*) \}$/gm)].at(-1)?.[1] ?? ''
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary)?.[1] ?? 0)
  const passed = count('pass')
  const failed = count('fail')
  return { passed, failed: passed + failed === 0 ? 1 : failed }
}
