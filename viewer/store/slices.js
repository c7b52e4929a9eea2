'use strict'

// A search over everything that is stored lets other work run every 20 ms, so that the viewer can receive spans in between.

const SLICE_MS = 20

class Slices {
  #startedAt = performance.now()
  #at = this.#startedAt
  #sliceMs

  constructor (sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs
  }

  get isDue () { return performance.now() - this.#at > this.#sliceMs }
  get tookMs () { return performance.now() - this.#startedAt }

  async rest () {
    await new Promise(setImmediate)
    this.#at = performance.now()
  }

  /** Runs a generator that stops now and then. @returns {Promise<any>} what it returns */
  async run (steps) {
    let step = steps.next()
    for (; !step.done; step = steps.next()) if (this.isDue) await this.rest()
    return step.value
  }
}

module.exports = { Slices }
