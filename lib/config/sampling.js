'use strict'

// Settings for what is recorded: which traces are sampled, as lib/sampling/sampler.js decides, and which requests get no span.

const { isRegExp } = require('node:util/types')
const { EMPTY, isObject, notNegative, wrongValue, listOf } = require('./checks.js')
const { checkOf, group } = require('./rows.js')
const { atOnce } = require('../runtime/report.js')

const EXPECTED_SAMPLER = "'always_on', 'always_off', a ratio from 0 to 1, { perSecond }, or a Sampler with shouldSample()"

const PARENT_BASED = 'parentbased_'
const KIND_FROM_NAME = new Map([['always_on', 'always_on'], ['always_off', 'always_off'], ['traceidratio', 'ratio']])

const SAMPLER = group({ check: checkSampler, variables: ['OTEL_TRACES_SAMPLER', 'OTEL_TRACES_SAMPLER_ARG'], read: samplerFromEnvironment, live: true }, {
  perSecond: { check: notNegative('traces a second') }
})
const checkMembers = checkOf({ members: SAMPLER.members })

// The result is { kind, ratio, perSecond, parentBased }, or the user's own Sampler.
function checkSampler (path, value) {
  if (value === 'always_on' || value === 'always_off') return samplerOf(value)
  if (isRatio(value)) return samplerOf('ratio', value)
  if (typeof value === 'object' && typeof value?.shouldSample === 'function') return value
  const { perSecond } = isObject(value) ? checkMembers(path, value) : EMPTY
  if (perSecond === undefined) throw wrongValue(path, EXPECTED_SAMPLER, value)
  if (perSecond === 0) return samplerOf('always_off')
  if (perSecond === Infinity) return samplerOf('always_on')
  return Object.freeze({ kind: 'per_second', ratio: undefined, perSecond, parentBased: true })
}

// As OpenTelemetry defines it, samplers without `parentbased_` decide again in each service.
function samplerFromEnvironment ([variable, arg], env) {
  const names = [...KIND_FROM_NAME.keys()]
  const name = env.oneOf([variable], [...names, ...names.map((name) => PARENT_BASED + name)]) ?? 'parentbased_always_on'
  const parentBased = name.startsWith(PARENT_BASED)
  const kind = KIND_FROM_NAME.get(name.slice(parentBased ? PARENT_BASED.length : 0))
  if (env.text(variable) === undefined && env.text(arg) !== undefined) {
    env.warn('LT_WARN_ENV', `${arg} is ignored: it needs ${variable}=parentbased_traceidratio or traceidratio`)
  }
  return samplerOf(kind, kind === 'ratio' ? ratioFromEnvironment(arg, env) : undefined, parentBased)
}

function ratioFromEnvironment (variable, env) {
  // Number('0x1') is 1, but only decimal numbers are accepted.
  const isDecimal = (text) => /^[0-9.]{1,40}(?:[eE]-?[0-9]{1,3})?$/.test(text)
  return env.firstValid([variable], 'a ratio from 0 to 1', (text) => isDecimal(text) && isRatio(Number(text)) ? Number(text) : undefined) ?? 1
}

function isRatio (value) {
  return typeof value === 'number' && value >= 0 && value <= 1
}

// The ratios 0 and 1 need no arithmetic per request.
function samplerOf (kind, ratio = undefined, parentBased = true) {
  if (kind === 'always_on' || ratio === 1) return Object.freeze({ kind: 'always_on', ratio: 1, parentBased })
  if (kind === 'always_off' || ratio === 0) return Object.freeze({ kind: 'always_off', ratio: 0, parentBased })
  return Object.freeze({ kind, ratio, parentBased })
}

// Which requests get no span. Patterns are compiled once. Matching takes time linear in the path, whatever a client sends, because a glob
// has one kind of wildcard and no backtracking.

const EXPECTED_PATTERN = "a path such as '/health' or '/assets/*', a RegExp, a function (request) => boolean, or an array of these"

const PATH_END = /[?#]/

// Returns a list of patterns, even for a single one.
function checkIgnore (path, value) {
  return Array.isArray(value) ? listOf(checkPattern)(path, value) : [checkPattern(path, value)]
}

function checkPattern (path, value) {
  if (typeof value === 'function') return value
  // A copy, because a RegExp with the flag g or y has state that belongs to the user's own matching.
  if (isRegExp(value)) return new RegExp(value)
  if (isGlob(value)) return value
  throw wrongValue(path, EXPECTED_PATTERN, value)
}

// A text that does not start like a path, or that has a query, can never match.
function isGlob (value) {
  return typeof value === 'string' && (value[0] === '/' || value[0] === '*') && !value.includes('?')
}

/** Whether a path looks like a regular expression: '/health/.*', '/users/(a|b)', '*\\.js$'. */
function isLikeExpression (pattern) {
  return typeof pattern === 'string' && /\.[*+]|[\\(\]]|\$$/.test(pattern)
}

function ignoreFromEnvironment ([variable], env) {
  return env.listOf(variable, "a comma-separated list of paths that start with '/' or '*', without '?'", isGlob)
}

/** @returns {((request: FastifyRequest) => boolean) | null} throws what a user's function throws; null: all requests are traced */
function compileIgnore (patterns) {
  if (patterns === undefined || patterns.length === 0) return null
  const matchers = patterns.filter((pattern) => typeof pattern !== 'function').map((pattern) => isRegExp(pattern) ? matcherOf(pattern) : compileGlob(pattern))
  const functions = patterns.filter((pattern) => typeof pattern === 'function')

  // HOT where `ignore` is set, once per request. Budget: 1 sliced string, 0 objects, 0 closures.
  return function ignore (request) {
    const path = matchers.length > 0 ? rawPath(request.raw) : ''
    for (let i = 0; i < matchers.length; i++) if (matchers[i](path)) return true
    for (let i = 0; i < functions.length; i++) if (atOnce(functions[i](request))) return true
    return false
  }
}

function matcherOf (expression) {
  return (path) => {
    expression.lastIndex = 0 // with the flag g or y it advances with each match
    return expression.test(path)
  }
}

// Each part is searched once, starting after the previous part. The leftmost match is always good enough, so nothing is retried.
function compileGlob (glob) {
  const [head, ...between] = glob.split('*')
  if (between.length === 0) return (path) => path === glob
  const tail = between.pop()
  return (path) => {
    const end = path.length - tail.length
    if (!path.startsWith(head) || !path.endsWith(tail)) return false
    let from = head.length
    for (let i = 0; i < between.length; i++) {
      const found = path.indexOf(between[i], from)
      if (found === -1) return false
      from = found + between[i].length
    }
    return from <= end // the parts must not overlap the tail
  }
}

// Returns the path that the client sent: the one before Fastify's rewriteUrl (kept in `originalUrl`), cut where Fastify's router cuts it.
function rawPath (raw) {
  const url = raw.originalUrl ?? raw.url ?? ''
  const end = url.search(PATH_END)
  return end === -1 ? url : url.slice(0, end)
}

module.exports = { SAMPLER, checkIgnore, compileIgnore, ignoreFromEnvironment, isLikeExpression }
