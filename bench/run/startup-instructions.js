'use strict'

// The instructions of a start, by callgrind: from the start of the process until the application is ready, and until it has
// answered its first request, which needs what was put off. V8 is made deterministic, so they repeat within a few thousandths
// however busy the machine is. What Node takes to start without any code is counted too, and taken away from each.

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
 * @param {object[]} cases of cases.js; the first is what the others are compared with. compileCache: with NODE_COMPILE_CACHE
 * @param {string} node
 * @returns {Promise<{ [name: string]: { label: string, ready: object, answered: object } }>} of each: `own`, instructions over
 *   Node's own start, `over` the first case's, and `share` of the first case's
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
          await countOne(node, [script], env, path.join(folder, 'profile')) // fills it
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
