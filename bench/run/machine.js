'use strict'

// Describes the machine of a measurement, and how much of its time other machines took meanwhile.

const fs = require('node:fs')
const os = require('node:os')
const { execFileSync } = require('node:child_process')
const { hotHash } = require('./code')
const { describePinning } = require('./pinning')

const MEASURED = [':/', ':(top,exclude)bench/results', ':(top,exclude,glob)**/*.md', ':(top,exclude)docs']

module.exports = { describeMachine, describeCommit, watchSteal }

function describeMachine () {
  return {
    cpu: os.cpus()[0]?.model.trim(),
    cores: os.availableParallelism(),
    memoryGB: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    governor: read('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor'),
    pinning: describePinning(),
    loadBefore: os.loadavg()[0]
  }
}

// root: the checkout → { commit, dirty, hot }, see ./code.js. Files that benches write do not count as dirty.
function describeCommit (root) {
  try {
    return { commit: git(root, 'rev-parse', 'HEAD'), dirty: git(root, 'status', '--porcelain', '-uno', '--', ...MEASURED) !== '', hot: hotHash() }
  } catch {
    return { commit: null, dirty: true, hot: hotHash() }
  }
}

// → () => the share of CPU time that the hypervisor has given to other machines since; undefined if unknown
function watchSteal () {
  const before = coreTimes()
  return () => {
    const after = coreTimes()
    if (!before || !after) return undefined
    return (after.steal - before.steal) / Math.max(1, after.total - before.total)
  }
}

// The first line of /proc/stat: user nice system idle iowait irq softirq steal …
function coreTimes () {
  const line = read('/proc/stat')?.split('\n')[0]
  if (!line) return null
  const times = line.split(/\s+/).slice(1, 9).map(Number)
  return { total: times.reduce((sum, time) => sum + time, 0), steal: times[7] }
}

function read (file) {
  try {
    return fs.readFileSync(file, 'utf8').trim()
  } catch {
    return undefined
  }
}

function git (root, ...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}
