'use strict'

// Keys of properties that light-trace adds to the objects of Fastify and Node. Symbol.for: with two copies of this package in one
// application, only the first creates the span. Their values have no enumerable properties, so that code that walks a request or a
// response never reaches a span.

const kContext = Symbol.for('light-trace.span') // on the raw response: the request's context; other copies of the package use the same text
const kTrace = Symbol.for('light-trace.trace') // on Fastify's request: the same context
const kLoggedSpan = Symbol('light-trace.loggedSpan') // on the logger of a request whose lines are exported; its children inherit it
const kStage = Symbol('light-trace.stage') // on Fastify's request: its RequestStages, if stages have spans

// On our hooks, whose names a minifier may change.
const kHook = Symbol.for('light-trace.hook')

/** Marks a hook as ours. `kind` is 'request' for hooks that begin or fail a request, 'stage' for those of a stage's span. */
function ownHook (fn, kind = 'other') {
  fn[kHook] = kind
  fn.bind = (self) => ownHook(Function.prototype.bind.call(fn, self), kind) // Fastify binds hooks to their scope
  return fn
}

/** The getter of `request.trace`, which returns `noTrace` for a request that is not traced. */
function traceGetterOf (noTrace) {
  // HOT. Costs nothing until it is read.
  return function trace () { return this[kTrace] ?? noTrace }
}

const kGiven = Symbol('light-trace.bare')

/**
 * Gives `request.trace` to a bare request, which Fastify creates without the application's decorators (for `frameworkErrors`, and for
 * HTTP/2 requests with an unknown method). Not enumerable, like a getter.
 */
function giveTrace (request, trace) {
  if (request.trace === undefined) Object.defineProperty(request, 'trace', { value: trace, configurable: true })
}

/**
 * Wraps Fastify's option `frameworkErrors` to give its request, for which no hook runs, `request.trace`. light-trace wraps no other
 * function of the user's. The first versions of Fastify 5 keep the option in a variable, so nothing is changed there.
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

/** The symbol with this description under which `object` has or inherits a property. */
function symbolOf (object, description) {
  for (let owner = object; owner !== null; owner = Object.getPrototypeOf(owner)) {
    const found = Object.getOwnPropertySymbols(owner).find((symbol) => symbol.description === description)
    if (found !== undefined) return found
  }
}

module.exports = { kContext, kTrace, kStage, kLoggedSpan, kHook, ownHook, symbolOf, traceGetterOf, giveTrace, giveTraceToFrameworkErrors }
