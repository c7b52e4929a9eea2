'use strict'

// The trace headers that came with a request, as far as a call must know them: a proxy copies them into what it sends.
//
// A trusted caller's traceparent is all that the usual request keeps, as a string: where it stands in a call it was
// copied, and is replaced. This class is for the others: of a caller that is not trusted nothing may leave, and a
// propagator of another format has headers of its own.

class CallerHeaders {
  #values = new Map()
  #fields

  /**
   * @param {object} headers of the request
   * @param {string[]} fields of a propagator that is not ours, beside the W3C headers
   * @param {boolean} isTrusted
   */
  constructor (headers, fields, isTrusted) {
    this.isTrusted = isTrusted
    this.#fields = fields
    for (const name of ['traceparent', 'tracestate', 'baggage', ...fields]) {
      const value = headers[name]
      if (value !== undefined) this.#values.set(name, String(value))
    }
  }

  /** Whether the header came with the request as it stands in the call. */
  has (name, value) {
    return this.#values.get(name) === value
  }

  /** What must not leave unless it is written anew: of a trusted caller, what the propagator speaks for. */
  get names () {
    return this.isTrusted ? this.#fields.filter((name) => name !== 'baggage') : this.#values.keys()
  }
}

/**
 * Whether a call's header is the caller's, copied.
 * @param {string | CallerHeaders | undefined} caller of a RequestContext
 */
function isCopied (caller, name, value) {
  return caller instanceof CallerHeaders ? caller.has(name, value) : name === 'traceparent' && caller === value
}

/** Whether nothing of this caller's may leave. */
function isUntrusted (caller) {
  return caller instanceof CallerHeaders && !caller.isTrusted
}

module.exports = { CallerHeaders, isCopied, isUntrusted }
