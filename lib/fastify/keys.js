'use strict'

// The keys of what hangs on Fastify's and Node's own objects. Symbol.for: with two copies of this package in one application, the
// first makes the span. What is under the keys has nothing enumerable: no walk over a request or a response may lead to a span.

const kContext = Symbol.for('light-trace.span') // on the raw response: the request's context; other copies of the package share the text
const kTrace = Symbol.for('light-trace.trace') // on Fastify's request: the same
const kLoggedSpan = Symbol('light-trace.loggedSpan') // on the logger of a request whose lines are exported; its children inherit it
const kStage = Symbol('light-trace.stage') // on Fastify's request: its RequestStages, where stages have spans

// On hooks of ours: a minifier gives functions other names.
const kHook = Symbol.for('light-trace.hook')

/** Marks a hook as ours; `kind` is 'request' for those that begin and fail a request, 'stage' for those of a stage's span. */
function ownHook (fn, kind = 'other') {
  fn[kHook] = kind
  fn.bind = (self) => ownHook(Function.prototype.bind.call(fn, self), kind) // Fastify binds hooks to their scope
  return fn
}

/** The getter of `request.trace`: a request that is not traced has `noTrace`. */
function traceGetterOf (noTrace) {
  // HOT. Costs nothing until it is read.
  return function trace () { return this[kTrace] ?? noTrace }
}

const kGiven = Symbol('light-trace.bare')

/**
 * Gives `request.trace` to a bare request: one that Fastify makes by its own class instead of the application's, without
 * decorators (`frameworkErrors`, and HTTP/2 requests whose method it does not know). Not enumerable, like a getter.
 */
function giveTrace (request, trace) {
  if (request.trace === undefined) Object.defineProperty(request, 'trace', { value: trace, configurable: true })
}

/**
 * Wraps Fastify's option `frameworkErrors`, whose request meets no hook, to give it `request.trace`. It is the only function
 * of the user's that light-trace wraps. The first versions of Fastify 5 keep it in a variable: there nothing is changed.
 */
function giveTraceToFrameworkErrors (app, trace) {
  const options = app[symbolOf(app, 'fastify.options')] // Fastify's own copy
  const original = options?.frameworkErrors
  if (typeof original !== 'function' || original[kGiven] === true) return
  options.frameworkErrors = Object.defineProperty(function frameworkErrors (error, request, reply) {
    giveTrace(request, trace)
    return original.call(this, error, request, reply)
  }, kGiven, { value: true })
}

/** The symbol of that description under which `object` has or inherits a value. */
function symbolOf (object, description) {
  for (let owner = object; owner !== null; owner = Object.getPrototypeOf(owner)) {
    const found = Object.getOwnPropertySymbols(owner).find((symbol) => symbol.description === description)
    if (found !== undefined) return found
  }
}

module.exports = { kContext, kTrace, kStage, kLoggedSpan, kHook, ownHook, symbolOf, traceGetterOf, giveTrace, giveTraceToFrameworkErrors }
