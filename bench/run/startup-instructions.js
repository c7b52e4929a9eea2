'use strict'

// Counts the instructions of a start with callgrind: from the start of the process until the application is ready, and until it has
// answered its first request, which includes deferred work. V8 is deterministic, so counts repeat within a few thousandths even on a
// busy machine. The instructions that Node itself needs to start are counted too, and subtracted.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { run } = require('../../scripts/run')
const installValgrind = require('../instructions/valgrind')
const { V8_FLAGS } = require('../instructions/count')
const { median } = require('./statistics')

const STARTS = 2
const DEADLINE_MS = 10 * 60_000
const UNTIL = ['ready', 'answered']
const script = path.join(__dirname, '../server/startup.js')

module.exports = { countStartup }

/**
 * @param {object[]} cases of cases.js; the first is the baseline. compileCache: with NODE_COMPILE_CACHE
 * @param {string} node
 * @returns {Promise<{ [name: string]: { label: string, ready: object, answered: object } }>} for each: `own`, the instructions beyond
 *   Node's own start; `over`, the difference to the first case; `share`, that difference relative to the first case
 */
async function countStartup (cases, node) {
  await installValgrind()
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-startup-'))
  try {
    const empty = await countStarts(node, ['-e', ''], {}, folder)
    const counted = {}
    for (const { name, label, setup, options, compileCache = false } of cases) {
      counted[name] = { label }
      for (const until of UNTIL) {
        const env = { LIGHT_TRACE_BENCH: JSON.stringify({ setup, options, answers: until === 'answered' }) }
        if (compileCache) {
          env.NODE_COMPILE_CACHE = path.join(folder, `${name}-${until}`)
          await countOne(node, [script], env, path.join(folder, 'profile')) // fills the cache
        }
        counted[name][until] = { own: await countStarts(node, [script], env, folder) - empty }
      }
    }
    for (const row of Object.values(counted)) {
      for (const until of UNTIL) {
        const base = counted[cases[0].name][until].own
        row[until].over = row[until].own - base
        row[until].share = row[until].over / base
      }
    }
    return counted
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
}

async function countStarts (node, args, env, folder) {
  return median(await Promise.all(Array.from({ length: STARTS }, (_, i) => countOne(node, args, env, path.join(folder, `profile-${i}`)))))
}

async function countOne (node, args, env, profile) {
  const command = ['--tool=callgrind', '--smc-check=all-non-file', `--callgrind-out-file=${profile}`, node, ...V8_FLAGS, ...args]
  const { code, output } = await run('valgrind', command, { env: { ...process.env, ...env }, deadlineMs: DEADLINE_MS })
  const collected = /Collected : (\d+)/.exec(output)?.[1]
  if (code !== 0 || collected === undefined) throw new Error(`no instructions were counted:\n${output.slice(-2000)}`)
  return Number(collected)
}
