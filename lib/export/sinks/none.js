'use strict'

// `exporter: 'none'`: spans are made and counted, and go nowhere.

class NoneSink {
  #stats

  constructor (stats) {
    this.#stats = stats
  }

  accept () {
    this.#stats.drop('exporter_none', 1)
  }

  async flush () {}
  async close () {}
}

module.exports = { NoneSink }
