'use strict'

// Which traces are sampled, as settings. lib/sampling/sampler.js decides by them.

const { notNegative, object, wrongValue } = require('./checks')

const EXPECTED = "'always_on', 'always_off', a ratio from 0 to 1, { perSecond }, or a Sampler with shouldSample()"

const PARENT_BASED = 'parentbased_'
const KIND_FROM_NAME = new Map([
  ['always_on', 'always_on'],
  ['always_off', 'always_off'],
  ['traceidratio', 'ratio']
])

module.exports = { checkSampler, samplerFromEnvironment }

const checkMembers = object({ perSecond: notNegative('traces a second') })

/** Checks the option. The result is { kind, ratio, perSecond, parentBased }, or the user's own Sampler. */
function checkSampler (path, value) {
  if (value === 'always_on' || value === 'always_off') return samplerOf(value, undefined, true)
  if (isRatio(value)) return samplerOf('ratio', value, true)
  if (typeof value === 'object' && typeof value?.shouldSample === 'function') return value
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return perSecondOf(path, value)
  throw wrongValue(path, EXPECTED, value)
}

function perSecondOf (path, value) {
  const { perSecond } = checkMembers(path, value)
  if (perSecond === undefined) throw wrongValue(path, EXPECTED, value)
  if (perSecond === 0) return samplerOf('always_off', undefined, true)
  if (perSecond === Infinity) return samplerOf('always_on', undefined, true)
  return Object.freeze({ kind: 'per_second', ratio: undefined, perSecond, parentBased: true })
}

// The names without `parentbased_` decide anew in each service, as OpenTelemetry defines them.
function samplerFromEnvironment (env) {
  const names = [...KIND_FROM_NAME.keys()]
  const name = env.oneOf(['OTEL_TRACES_SAMPLER'], [...names, ...names.map((name) => PARENT_BASED + name)]) ?? 'parentbased_always_on'
  const parentBased = name.startsWith(PARENT_BASED)
  const kind = KIND_FROM_NAME.get(name.slice(parentBased ? PARENT_BASED.length : 0))
  return samplerOf(kind, kind === 'ratio' ? ratioFromEnvironment(env) : undefined, parentBased)
}

function ratioFromEnvironment (env) {
  const argument = env.find('OTEL_TRACES_SAMPLER_ARG')
  if (argument === undefined) return 1
  // Number('') is 0 and Number('0x1') is 1: only what is written as a decimal number counts.
  const ratio = /^[0-9.]{1,40}(?:[eE]-?[0-9]{1,3})?$/.test(argument.value) ? Number(argument.value) : NaN
  if (isRatio(ratio)) return ratio
  env.ignored(argument.name, argument.value, 'a ratio from 0 to 1')
  return 1
}

function isRatio (value) {
  return typeof value === 'number' && value >= 0 && value <= 1
}

// The two ends of the ratio need no arithmetic per request.
function samplerOf (kind, ratio, parentBased) {
  if (ratio === 1) kind = 'always_on'
  if (ratio === 0) kind = 'always_off'
  return Object.freeze({ kind, ratio: kind === 'always_on' ? 1 : kind === 'always_off' ? 0 : ratio, parentBased })
}
