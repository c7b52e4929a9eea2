'use strict'

// Which traces are sampled, as settings. How it is decided is span/sampler's subject.

const { anyOf, object, wrongValue } = require('./checks')

const EXPECTED = "'always_on', 'always_off', a ratio from 0 to 1, { perSecond }, or a Sampler with shouldSample()"

const FROM_NAME = new Map([
  ['always_on', { kind: 'always_on', parentBased: false }],
  ['always_off', { kind: 'always_off', parentBased: false }],
  ['traceidratio', { kind: 'ratio', parentBased: false }],
  ['parentbased_always_on', { kind: 'always_on', parentBased: true }],
  ['parentbased_always_off', { kind: 'always_off', parentBased: true }],
  ['parentbased_traceidratio', { kind: 'ratio', parentBased: true }]
])

module.exports = { checkSampler, samplerFromEnvironment }

const checkMembers = object({
  perSecond: anyOf('a number of traces a second, 0 or more', (value) => typeof value === 'number' && value >= 0)
})

// From code: { kind, ratio, parentBased } or the given Sampler object itself.
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
  const name = env.oneOf(['OTEL_TRACES_SAMPLER'], [...FROM_NAME.keys()]) ?? 'parentbased_always_on'
  const { kind, parentBased } = FROM_NAME.get(name)
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
