'use strict'

// Opt-in child spans of Fastify's own stages, for the plugin and for a single route.

const { EMPTY, boolean, listOf, literal, object } = require('./checks')

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse', 'onError']

const checkMembers = object({ handler: boolean, hooks: listOf(literal(...HOOKS)) })

module.exports = { checkSpans, resolveSpans }

// true: the handler, which is what most want to see.
function checkSpans (path, value) {
  if (typeof value === 'boolean') return { handler: value }
  return checkMembers(path, value)
}

function resolveSpans ({ handler = false, hooks = [] } = EMPTY) {
  return Object.freeze({ handler, hooks: Object.freeze([...new Set(hooks)]) })
}
