'use strict'

// A route's own `config.trace`. Wrong ones throw when the route is added, under the same codes.

const { EMPTY, attributes, boolean, listOf, literal, object, orCallback, text, wrongValue } = require('./checks')

const PATH = 'config.trace'

// Opt-in child spans of Fastify's own stages, for the plugin and for a single route.
const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse', 'onError']

const checkSpanMembers = object({ handler: boolean, hooks: listOf(literal(...HOOKS)) })

const checkRoute = object({
  spanName: orCallback(text),
  attributes: orCallback(attributes),
  spans: checkSpans,
  sampler: (...args) => require('./sampler').checkSampler(...args),
  metrics: boolean,
  ignore: (path, value) => typeof value === 'boolean' ? value : require('./ignore').checkIgnore(path, value)
})

const UNSET = Object.freeze({ off: false, spanName: null, attributes: null, spans: null, sampler: null, metrics: true, ignore: null })
const OFF = Object.freeze({ ...UNSET, off: true })

module.exports = { resolveRouteOptions, checkSpans, resolveSpans }

// true: the handler, which is what most want to see.
function checkSpans (path, value) {
  return typeof value === 'boolean' ? { handler: value } : checkSpanMembers(path, value)
}

function resolveSpans ({ handler = false, hooks = [] } = EMPTY) {
  return Object.freeze({ handler, hooks: Object.freeze([...new Set(hooks)]) })
}

// null means in each field: what the plugin's options say.
function resolveRouteOptions (value) {
  if (value === undefined || value === true) return UNSET
  if (value === false) return OFF
  if (typeof value !== 'object' || value === null) throw wrongValue(PATH, 'true, false or an object', value)
  const given = checkRoute(PATH, value)
  return Object.freeze({
    off: given.ignore === true,
    spanName: given.spanName ?? null,
    attributes: given.attributes ?? null,
    spans: given.spans === undefined ? null : resolveSpans(given.spans),
    sampler: given.sampler ?? null,
    metrics: given.metrics ?? true,
    ignore: given.ignore === undefined || typeof given.ignore === 'boolean' ? null : require('./ignore').compileIgnore(given.ignore)
  })
}
