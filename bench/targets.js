'use strict'

// The cost to reach, as data: issue 3. measured takes a results file's content and gives the spread of
// what was measured, or null where it was not.

const { spread } = require('./run/statistics')

const MB = 1e6

const targets = [
  { label: 'every request sampled and delivered, over bare', unit: 'µs', atMost: 1.0, measured: over('lighttrace-100') },
  { label: '@fastify/otel alone costs so many times that', unit: '×', atLeast: 15, measured: times('fastify-otel', 'lighttrace-100') },
  { label: 'NodeSDK with http + @fastify/otel costs so many times that', unit: '×', atLeast: 35, measured: times('nodesdk-http', 'lighttrace-100') },
  { label: 'unsampled, over bare', unit: 'µs', atMost: 0.6, measured: over('lighttrace-unsampled') },
  { label: 'off (OTEL_SDK_DISABLED), over the AsyncLocalStorage floor', unit: 'µs', atMost: 0.1, measured: (result) => row(result, 'lighttrace-off')?.overAlsoMicros },
  { label: 'collector down, buffer below half, over bare', unit: 'µs', atMost: 1.1, measured: over('lighttrace-down-below-half') },
  { label: 'collector down for the whole run: RSS over bare (buffer of 32 MiB + 40 MB)', unit: 'MB', atMost: 32 * 2 ** 20 / MB + 40, measured: rssOver('lighttrace-down') },
  { label: 'p99 latency at a fixed rate of half the capacity, against bare', unit: '×', atMost: 1.05, measured: (result) => row(result, 'lighttrace-rate')?.relativeP99 },
  { label: 'RSS at full load, delivered, over bare', unit: 'MB', atMost: 25, measured: rssOver('lighttrace-100') },
  { label: 'time to require and register, over Fastify', unit: 'ms', atMost: 12, measured: (result) => result.startup?.['lighttrace-100']?.overMs },
  { label: 'installed size of light-trace and fastify-plugin', unit: 'MB', atMost: 1, measured: (result) => result.installedBytes && single(result.installedBytes.lighttrace / MB) },
  { label: 'every request sampled and delivered on Node 20, over bare', unit: 'µs', atMost: 2.0, measured: over('lighttrace-100@20') },
  { label: 'every request sampled and delivered on Node 22, over bare', unit: 'µs', atMost: 2.0, measured: over('lighttrace-100@22') }
]

module.exports = { targets, row, verdict }

// A spread that reaches over the bound says neither.
function verdict ({ atMost = Infinity, atLeast = -Infinity }, { min, max }) {
  if (max <= atMost && min >= atLeast) return 'reached'
  return min > atMost || max < atLeast ? '**missed**' : 'within the spread'
}

function row (result, name) {
  return result.rows.find((candidate) => candidate.name === name)
}

function over (name) {
  return (result) => row(result, name)?.overMicros
}

function rssOver (name) {
  return (result) => row(result, name)?.overRssMB
}

// How many times the difference of `many` is that of `one`, round by round.
function times (many, one) {
  return (result) => {
    const [bare, a, b] = ['bare', many, one].map((name) => result.rounds[name])
    if (!bare || !a || !b) return null
    return spread(bare.map((base, i) => (a[i].cpuMicrosPerRequest - base.cpuMicrosPerRequest) / (b[i].cpuMicrosPerRequest - base.cpuMicrosPerRequest)))
  }
}

function single (value) {
  return { median: value, min: value, max: value }
}
