'use strict'

// Opt-in child spans of Fastify's own stages, for the plugin and for a single route.

const { EMPTY, boolean, listOf, literal, object } = require('./checks')

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse', 'onError']

const checkSpans = object({ handler: boolean, hooks: listOf(literal(...HOOKS)) })

module.exports = { checkSpans, resolveSpans }

function resolveSpans ({ handler = false, hooks = [] } = EMPTY) {
  return Object.freeze({ handler, hooks: Object.freeze([...new Set(hooks)]) })
}
