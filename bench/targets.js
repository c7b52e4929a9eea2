'use strict'

// The cost to reach, as data: issue 3. measured takes the results files overhead.json and paired.json and gives
// the spread of what was measured, or null where it was not. CPU time is judged by the paired slices, and as a
// share of what bare Fastify takes: the targets are for a machine where that is 10 µs.

const { spread } = require('./run/statistics')

const BARE_MICROS = 10
const MB = 1e6

const targets = [
  { label: 'every request sampled and delivered, over bare', unit: 'µs', atMost: 1.0, measured: over('lighttrace-100'), scale: scaleOf('lighttrace-100') },
  { label: '@fastify/otel alone costs so many times that', unit: '×', atLeast: 15, measured: times('fastify-otel', 'lighttrace-100') },
  { label: 'NodeSDK with http + @fastify/otel costs so many times that', unit: '×', atLeast: 35, measured: times('nodesdk-http', 'lighttrace-100') },
  { label: 'unsampled, over bare', unit: 'µs', atMost: 0.6, measured: over('lighttrace-unsampled'), scale: scaleOf('lighttrace-unsampled') },
  { label: 'off (OTEL_SDK_DISABLED), over the AsyncLocalStorage floor', unit: 'µs', atMost: 0.1, measured: overFloor('lighttrace-off'), scale: scaleOf('lighttrace-off') },
  { label: 'collector down, buffer below half, over bare', unit: 'µs', atMost: 1.1, measured: over('lighttrace-down-below-half'), scale: scaleOf('lighttrace-down-below-half') },
  { label: 'collector down for the whole run: RSS over bare (buffer of 32 MiB + 40 MB)', unit: 'MB', atMost: 32 * 2 ** 20 / MB + 40, measured: rssOver('lighttrace-down') },
  { label: 'p99 latency at a fixed rate of half the capacity, against bare', unit: '×', atMost: 1.05, measured: ({ overhead }) => row(overhead, 'lighttrace-rate')?.relativeP99 },
  { label: 'RSS at full load, delivered, over bare', unit: 'MB', atMost: 25, measured: rssOver('lighttrace-100') },
  { label: 'time to require and register, over Fastify', unit: 'ms', atMost: 12, measured: ({ overhead }) => overhead.startup?.['lighttrace-100']?.over.totalMs },
  { label: 'installed size of light-trace and fastify-plugin', unit: 'MB', atMost: 1, measured: ({ overhead }) => overhead.installedBytes && single(overhead.installedBytes.lighttrace / MB) },
  { label: 'every request sampled and delivered on Node 20, over bare', unit: 'µs', atMost: 2.0, measured: over('lighttrace-100@20'), scale: scaleOf('lighttrace-100@20') },
  { label: 'every request sampled and delivered on Node 22, over bare', unit: 'µs', atMost: 2.0, measured: over('lighttrace-100@22'), scale: scaleOf('lighttrace-100@22') }
]

module.exports = { targets, row, judge }

// → { measured, scaled, verdict }; scaled is what a bare Fastify of 10 µs makes of it, measured itself where
// the figure is no time of a request. A spread that reaches over the bound says neither.
function judge ({ measured, scale, atMost = Infinity, atLeast = -Infinity }, results) {
  const found = measured(results)
  if (!found) return { measured: null, scaled: null, verdict: '' }
  const factor = scale?.(results) ?? 1
  const scaled = { median: found.median * factor, min: found.min * factor, max: found.max * factor }
  if (scaled.max <= atMost && scaled.min >= atLeast) return { measured: found, scaled, verdict: 'reached' }
  return { measured: found, scaled, verdict: scaled.min > atMost || scaled.max < atLeast ? '**missed**' : 'within the spread' }
}

function row (result, name) {
  return result?.rows.find((candidate) => candidate.name === name)
}

function over (name) {
  return ({ paired }) => row(paired, name)?.over
}

function overFloor (name) {
  return ({ paired }) => {
    const [floor, found] = [row(paired, 'als-floor'), row(paired, name)]
    if (!floor || !found) return null
    return spread([found.micros.min, found.micros.median, found.micros.max].map((micros) => micros - floor.micros.median))
  }
}

function scaleOf (name) {
  return ({ paired }) => BARE_MICROS / row(paired, row(paired, name).against).micros.median
}

function rssOver (name) {
  return ({ overhead }) => row(overhead, name)?.overRssMB
}

// How many times the difference of `many` is that of `one`.
function times (many, one) {
  return ({ paired }) => {
    const [a, b] = [row(paired, many)?.over, row(paired, one)?.over]
    return a && b ? { median: a.median / b.median, min: a.min / b.max, max: a.max / b.min } : null
  }
}

function single (value) {
  return { median: value, min: value, max: value }
}
