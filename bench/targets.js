'use strict'

// The cost to reach, as data; docs/overhead.md shows it. measured takes the results files overhead.json, paired.json and
// instructions.json and gives
// the spread of what was measured, or null where it was not. CPU time is judged by the paired slices, and as a
// share of what bare Fastify takes: the targets are for a machine where that is 10 µs. "Strict" is the same against a baseline
// that has what light-trace does for the process as a whole (lib/runtime/next-tick.js): what tracing alone costs.

const { keptTickOf } = require('./cases')
const { spread } = require('./run/statistics')

const BARE_MICROS = 10
const MB = 1e6

const targets = [
  { label: 'every request sampled and delivered, over bare', ...instructions(2800, (over) => over('delivered')) },
  { label: 'no request sampled, over bare', ...instructions(1900, (over) => over('unsampled')) },
  { label: 'off (OTEL_SDK_DISABLED), over bare', ...instructions(1000, (over) => over('disabled')) },
  { label: "with a caller's traceparent, more than without", ...instructions(400, (over) => over('traceparent') - over('delivered')) },
  { label: 'logger on, more than off', ...instructions(1000, (over) => over('logger') - over('delivered')) },
  { label: 'twenty attributes and a child span, more than without', ...instructions(5000, (over) => over('attributes') - over('delivered')) },
  { label: 'a fetch and its span', ...instructions(4000, (over) => over('fetch') - over('delivered')) },
  { label: 'a Redis GET and its span', ...instructions(2500, (over) => over('redis') - over('delivered')) },
  { label: 'collector down, buffer below half, more than delivered', ...instructions(300, (over) => over('down') - over('delivered')) },
  { label: 'Node 26: every request sampled and delivered, over bare', ...instructions(2900, (over) => over('delivered'), 26) },
  { label: 'Node 22: every request sampled and delivered, over the floor', ...instructions(3000, (over) => over('delivered') - over('floor'), 22) },
  { label: 'every request sampled and delivered, over bare', unit: 'µs', atMost: 1.0, ...micros('lighttrace-100') },
  { label: '@fastify/otel alone costs so many times what light-trace does, strictly', unit: '×', atLeast: 15, measured: times('fastify-otel', 'lighttrace-100') },
  { label: 'NodeSDK with http + @fastify/otel costs so many times what light-trace does, strictly', unit: '×', atLeast: 35, measured: times('nodesdk-http', 'lighttrace-100') },
  { label: 'unsampled, over bare', unit: 'µs', atMost: 0.6, ...micros('lighttrace-unsampled') },
  { label: 'off (OTEL_SDK_DISABLED), over the AsyncLocalStorage floor', unit: 'µs', atMost: 0.1, ...micros('lighttrace-off', 'als-floor') },
  { label: 'collector down, buffer below half, over bare', unit: 'µs', atMost: 1.1, ...micros('lighttrace-down-below-half') },
  { label: 'collector down for the whole run: RSS over bare (buffer of 32 MiB + 40 MB)', unit: 'MB', atMost: 32 * 2 ** 20 / MB + 40, measured: rssOver('lighttrace-down') },
  { label: 'p99 latency at a fixed rate of half the capacity, against bare', unit: '×', atMost: 1.05, measured: ({ overhead }) => row(overhead, 'lighttrace-rate')?.relativeP99 },
  { label: 'RSS at full load, delivered, over bare', unit: 'MB', atMost: 25, measured: rssOver('lighttrace-100') },
  { label: 'time to require and register, over Fastify', unit: 'ms', atMost: 12, measured: ({ overhead }) => overhead.startup?.['lighttrace-100']?.over.totalMs },
  { label: 'installed size of light-trace and fastify-plugin', unit: 'MB', atMost: 1, measured: ({ overhead }) => overhead.installedBytes && single(overhead.installedBytes.lighttrace / MB) },
  { label: 'every request sampled and delivered on Node 20, over bare', unit: 'µs', atMost: 2.0, ...micros('lighttrace-100@20') },
  { label: 'every request sampled and delivered on Node 22, over bare', unit: 'µs', atMost: 2.0, ...micros('lighttrace-100@22') }
]

module.exports = { targets, row, judge }

// → { measured, scaled, verdict, strict, strictVerdict }; scaled is what a bare Fastify of 10 µs makes of it, measured itself
// where the figure is no time of a request. A spread that reaches over the bound says neither.
function judge (target, results) {
  const found = target.measured(results)
  if (!found) return { measured: null, scaled: null, verdict: '', strict: null, strictVerdict: '' }
  const scaled = scaledBy(found, target.scale?.(results))
  const strict = target.strict ? scaledBy(target.strict(results), target.strictScale(results)) : null
  return { measured: found, scaled, verdict: verdict(target, scaled), strict, strictVerdict: strict ? verdict(target, strict) : '' }
}

function scaledBy (found, factor = 1) {
  return found && { median: found.median * factor, min: found.min * factor, max: found.max * factor }
}

function verdict ({ atMost = Infinity, atLeast = -Infinity }, { min, max }) {
  if (max <= atMost && min >= atLeast) return 'reached'
  return min > atMost || max < atLeast ? '**missed**' : 'within the spread'
}

function row (result, name) {
  return result?.rows.find((candidate) => candidate.name === name)
}

// CPU time of a case over that of `floor`, by default bare Fastify on the same Node.
function micros (name, floor) {
  const over = (baselineOf) => ({ paired }) => {
    const found = row(paired, name)
    const base = found && row(paired, baselineOf(floor ?? found.against))
    return base ? spread([found.micros.min, found.micros.median, found.micros.max].map((micros) => micros - base.micros.median)) : null
  }
  const scale = (baselineOf) => ({ paired }) => BARE_MICROS / row(paired, baselineOf(row(paired, name).against)).micros.median
  const itself = (baseline) => baseline
  return { measured: over(itself), scale: scale(itself), strict: over(keptTickOf), strictScale: scale(keptTickOf) }
}

// By instructions: no interval where a row was counted in one process.
function instructions (atMost, pick, major = 24) {
  return {
    unit: 'instructions',
    atMost,
    measured ({ instructions }) {
      const value = pick((name) => row(instructions?.nodes[major], name)?.over?.median)
      return Number.isFinite(value) ? single(value) : null
    }
  }
}

function rssOver (name) {
  return ({ overhead }) => row(overhead, name)?.overRssMB
}

// How many times what `many` costs over bare Fastify is what `one` costs, strictly.
function times (many, one) {
  return ({ paired }) => {
    const [a, b] = [row(paired, many)?.over, row(paired, one)?.overKept]
    return a && b ? { median: a.median / b.median, min: a.min / b.max, max: a.max / b.min } : null
  }
}

function single (value) {
  return { median: value, min: value, max: value }
}
