'use strict'

// The tracers of the applications that are open, oldest first, for those who ask from outside of a request: users of the
// OpenTelemetry API, subscribers of channels. Held weakly: an application that nobody closes, as in many a test suite, goes
// when its user lets go of it.

class OpenApps {
  #refs = []

  /**
   * The context managers that these applications go by, each once: the one that is registered with the API, then our own. A request is
   * entered in both, and only the first knows the context that an instrumentation has made inside of it.
   */
  managers = []

  add (tracer) {
    this.#refs.push(new WeakRef(tracer))
    const { contextManager } = tracer
    if (!this.managers.includes(contextManager)) this.managers.push(contextManager)
  }

  /** One that is registered with the API and is not ours. */
  addForeignManager (manager) {
    if (!this.managers.includes(manager)) this.managers.unshift(manager)
  }

  delete (tracer) {
    this.#refs = this.#refs.filter((ref) => {
      const other = ref.deref()
      return other !== undefined && other !== tracer
    })
    if (this.#refs.length === 0) this.managers.length = 0
  }

  get isEmpty () {
    return this.first() === undefined
  }

  first () {
    for (const ref of this.#refs) {
      const tracer = ref.deref()
      if (tracer !== undefined) return tracer
    }
    return undefined
  }

  /** @returns {Tracer[]} */
  all () {
    return this.#refs.map((ref) => ref.deref()).filter((tracer) => tracer !== undefined)
  }
}

module.exports = { OpenApps }
