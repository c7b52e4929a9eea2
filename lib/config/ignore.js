'use strict'

// Which requests get no span. Patterns are compiled once; a request is compared in time linear in its path, whatever a caller
// sends: the glob has one wildcard and no backtracking.

const { isRegExp } = require('node:util/types')
const { atOnce } = require('../runtime/user-code')
const { listOf, wrongValue } = require('./checks')

const VARIABLE = 'OTEL_FASTIFY_IGNORE_PATHS' // @fastify/otel's

const EXPECTED = "a path such as '/health' or '/assets/*', a RegExp, a function (request) => boolean, or an array of these"

const PATH_END = /[?#]/

const checkPatterns = listOf(checkPattern)

module.exports = { checkIgnore, compileIgnore, ignoreFromEnvironment }

// The result is a list of patterns, also where a single one was given.
function checkIgnore (path, value) {
  return Array.isArray(value) ? checkPatterns(path, value) : [checkPattern(path, value)]
}

function checkPattern (path, value) {
  if (typeof value === 'function') return value
  // A copy, because a RegExp with the flag g or y carries state that belongs to the user's own matching.
  if (isRegExp(value)) return new RegExp(value)
  if (isGlob(value)) return value
  throw wrongValue(path, EXPECTED, value)
}

// A text that does not start as a path does can never match, nor can one with a query.
function isGlob (value) {
  return typeof value === 'string' && (value[0] === '/' || value[0] === '*') && !value.includes('?')
}

function ignoreFromEnvironment (env) {
  return env.listOf(VARIABLE, "a comma-separated list of paths that start with '/' or '*', without '?'", isGlob)
}

/** @returns {((request: FastifyRequest) => boolean) | null} which throws what a user's function throws; null: all are traced */
function compileIgnore (patterns) {
  if (patterns === undefined || patterns.length === 0) return null
  const texts = patterns.filter((pattern) => typeof pattern === 'string')
  const paths = new Set(texts.filter((glob) => !glob.includes('*')))
  const globs = texts.filter((glob) => glob.includes('*')).map(compileGlob)
  const expressions = patterns.filter(isRegExp)
  const functions = patterns.filter((pattern) => typeof pattern === 'function')
  const comparesPath = functions.length < patterns.length

  // HOT where `ignore` is set, once per request. Budget: 1 sliced string, 0 objects, 0 closures.
  return function ignore (request) {
    if (comparesPath) {
      const path = rawPath(request.raw)
      if (paths.has(path)) return true
      for (let i = 0; i < globs.length; i++) if (globs[i](path)) return true
      for (let i = 0; i < expressions.length; i++) {
        expressions[i].lastIndex = 0 // with the flag g or y it moves on with each match
        if (expressions[i].test(path)) return true
      }
    }
    for (let i = 0; i < functions.length; i++) if (atOnce(functions[i](request))) return true
    return false
  }
}

// Each part is searched once from where the last was found: the leftmost find is always good enough, so nothing is tried again.
function compileGlob (glob) {
  const [head, ...between] = glob.split('*')
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
    return from <= end // the parts must not share characters with the tail
  }
}

// The path that the client sent: before Fastify's rewriteUrl, which leaves it in `originalUrl`, and cut where its router cuts it.
function rawPath (raw) {
  const url = raw.originalUrl ?? raw.url ?? ''
  const end = url.search(PATH_END)
  return end === -1 ? url : url.slice(0, end)
}
