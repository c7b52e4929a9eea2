'use strict'

// The API's TracerProvider and Tracer over ours. Which of our tracers makes a span is asked at each
// `startSpan`: one fetched at module load works for applications that come later.

const { SPAN_KEY } = require('../context/keys')
const { EMPTY_CONTEXT } = require('../context/suppressed')
const { parentIn } = require('../context/parent')
const { wrapSpanContext } = require('../span/non-recording-span')
const { Scope } = require('../span/scope')
const { isContext } = require('./context-manager')

// Tracers are named after packages. Names made of user data must not pile up.
const TRACERS_MAX = 256

class ApiTracerProvider {
  #resolve
  #manager
  #tracers = new Map()

  /**
   * @param {(context: Context) => Tracer | undefined} resolve
   * @param {{ active, with }} manager
   */
  constructor (resolve, manager) {
    this.#resolve = resolve
    this.#manager = manager
  }

  getTracer (name, version, options) {
    const scope = new Scope(textOf(name) ?? '', textOf(version), textOf(options?.schemaUrl))
    const known = this.#tracers.get(scope.key)
    if (known !== undefined) return known
    const tracer = new ApiTracer(this.#resolve, this.#manager, scope)
    if (this.#tracers.size < TRACERS_MAX) this.#tracers.set(scope.key, tracer)
    return tracer
  }

  /** For those who find us in the API's slot and expect its own proxy. */
  getDelegate () {
    return this
  }
}

class ApiTracer {
  #resolve
  #manager
  #scope

  constructor (resolve, manager, scope) {
    this.#resolve = resolve
    this.#manager = manager
    this.#scope = scope
  }

  startSpan (name, options, context) {
    const parent = isContext(context) ? context : this.#manager.active()
    const tracer = this.#resolve(parent)
    if (tracer === undefined) return wrapSpanContext(parentIn(parent))
    try {
      return tracer.startSpan(name, options, parent, this.#scope)
    } catch (error) {
      tracer.report.once('LT_WARN_SPAN', `a span could not be started: ${error?.message}`)
      return wrapSpanContext(undefined)
    }
  }

  /** (name, fn), (name, options, fn) and (name, options, context, fn): runs `fn(span)` and leaves the end to it. */
  startActiveSpan (name, options, context, fn) {
    if (typeof options === 'function') return this.startActiveSpan(name, undefined, undefined, options)
    if (typeof context === 'function') return this.startActiveSpan(name, options, undefined, context)
    if (typeof fn !== 'function') return undefined
    const parent = isContext(context) ? context : this.#manager.active() ?? EMPTY_CONTEXT
    const span = this.startSpan(name, options, parent)
    return this.#manager.with(parent.setValue(SPAN_KEY, span), fn, undefined, span)
  }
}

function textOf (value) {
  return typeof value === 'string' ? value.slice(0, 1024) : undefined
}

module.exports = { ApiTracerProvider }
