'use strict'

// Finds valgrind, or installs it with apt when run as root.

const fs = require('node:fs')
const path = require('node:path')
const { run } = require('../../scripts/run')

const DEADLINE_MS = 15 * 60_000

module.exports = installValgrind

/** @returns {Promise<void>} when `valgrind` and `callgrind_control` can be run */
async function installValgrind () {
  if (isThere()) return
  if (process.platform === 'linux' && process.getuid() === 0) await aptInstall()
  if (!isThere()) throw new Error('valgrind is missing: install it (Debian, Ubuntu: apt-get install valgrind), or run this as root on Debian')
}

function isThere () {
  const places = (process.env.PATH ?? '').split(path.delimiter)
  return ['valgrind', 'callgrind_control'].every((program) => places.some((place) => fs.existsSync(path.join(place, program))))
}

async function aptInstall () {
  console.error('installing valgrind…')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  await run('apt-get', ['update', '-q'], { env, deadlineMs: DEADLINE_MS })
  const { code, output } = await run('apt-get', ['install', '-y', '-q', '--no-install-recommends', 'valgrind'], { env, deadlineMs: DEADLINE_MS })
  if (code !== 0) console.error(output)
}
