'use strict'

// Where Fastify makes a request by its own class instead of the application's (`frameworkErrors`, and HTTP/2 requests whose
// method it does not know), no decorator is on it, and `request.trace` would be undefined in the user's code.

const kGiven = Symbol('light-trace.bare')

/** Gives `request.trace` to a request that lacks it. Never enumerable, like a getter of the prototype. */
function giveTrace (request, trace) {
  if (request.trace === undefined) Object.defineProperty(request, 'trace', { value: trace, configurable: true })
}

/**
 * The only function of the user's that light-trace wraps: what is given as Fastify's option `frameworkErrors` gets its
 * request before any hook runs. The wrapper gives it `request.trace` and changes nothing else. Fastify 5.0.0 and its next keep the
 * function in a variable of their own: there `request.trace` stays undefined in it.
 */
function giveTraceToFrameworkErrors (app, trace) {
  const options = optionsOf(app)
  const original = options?.frameworkErrors
  if (typeof original !== 'function' || original[kGiven] === true) return
  options.frameworkErrors = Object.defineProperty(function frameworkErrors (error, request, reply) {
    giveTrace(request, trace)
    return original.call(this, error, request, reply)
  }, kGiven, { value: true })
}

/** Fastify's own copy of what it was given; child scopes inherit it. */
function optionsOf (app) {
  for (let at = app; at !== null && at !== undefined; at = Object.getPrototypeOf(at)) {
    const symbol = Object.getOwnPropertySymbols(at).find(({ description }) => /^fastify\.options$/.test(description))
    if (symbol !== undefined) return at[symbol]
  }
  return undefined
}

module.exports = { giveTrace, giveTraceToFrameworkErrors }
