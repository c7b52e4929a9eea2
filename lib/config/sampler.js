'use strict'

// Which traces are sampled, as settings. lib/sampling/sampler.js decides by them.

const { EMPTY, isObject, notNegative, object, wrongValue } = require('./checks')

const EXPECTED = "'always_on', 'always_off', a ratio from 0 to 1, { perSecond }, or a Sampler with shouldSample()"

const ARG = 'OTEL_TRACES_SAMPLER_ARG'
const PARENT_BASED = 'parentbased_'
const KIND_FROM_NAME = new Map([['always_on', 'always_on'], ['always_off', 'always_off'], ['traceidratio', 'ratio']])

module.exports = { checkSampler, samplerFromEnvironment }

const checkMembers = object({ perSecond: notNegative('traces a second') })

// The result is { kind, ratio, perSecond, parentBased }, or the user's own Sampler.
function checkSampler (path, value) {
  if (value === 'always_on' || value === 'always_off') return samplerOf(value)
  if (isRatio(value)) return samplerOf('ratio', value)
  if (typeof value === 'object' && typeof value?.shouldSample === 'function') return value
  const { perSecond } = isObject(value) ? checkMembers(path, value) : EMPTY
  if (perSecond === undefined) throw wrongValue(path, EXPECTED, value)
  if (perSecond === 0) return samplerOf('always_off')
  if (perSecond === Infinity) return samplerOf('always_on')
  return Object.freeze({ kind: 'per_second', ratio: undefined, perSecond, parentBased: true })
}

// The names without `parentbased_` decide anew in each service, as OpenTelemetry defines them.
function samplerFromEnvironment (env) {
  const names = [...KIND_FROM_NAME.keys()]
  const name = env.oneOf(['OTEL_TRACES_SAMPLER'], [...names, ...names.map((name) => PARENT_BASED + name)]) ?? 'parentbased_always_on'
  const parentBased = name.startsWith(PARENT_BASED)
  const kind = KIND_FROM_NAME.get(name.slice(parentBased ? PARENT_BASED.length : 0))
  if (env.text('OTEL_TRACES_SAMPLER') === undefined && env.text(ARG) !== undefined) {
    env.warn('LT_WARN_ENV', `${ARG} is ignored: it needs OTEL_TRACES_SAMPLER=parentbased_traceidratio, or traceidratio`)
  }
  return samplerOf(kind, kind === 'ratio' ? ratioFromEnvironment(env) : undefined, parentBased)
}

function ratioFromEnvironment (env) {
  const text = env.text(ARG) ?? '1'
  // Number('0x1') is 1: only what is written as a decimal number counts.
  const ratio = /^[0-9.]{1,40}(?:[eE]-?[0-9]{1,3})?$/.test(text) ? Number(text) : NaN
  if (isRatio(ratio)) return ratio
  env.ignored(ARG, text, 'a ratio from 0 to 1')
  return 1
}

function isRatio (value) {
  return typeof value === 'number' && value >= 0 && value <= 1
}

// The two ends of the ratio need no arithmetic per request.
function samplerOf (kind, ratio = undefined, parentBased = true) {
  if (kind === 'always_on' || ratio === 1) return Object.freeze({ kind: 'always_on', ratio: 1, parentBased })
  if (kind === 'always_off' || ratio === 0) return Object.freeze({ kind: 'always_off', ratio: 0, parentBased })
  return Object.freeze({ kind, ratio, parentBased })
}
