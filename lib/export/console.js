'use strict'

// `exporter: 'console'`: each request's spans as a readable tree.

class ConsoleSink {
  #stats

  constructor (stats) {
    this.#stats = stats
  }

  accept (span) {
    this.#stats.handedOver++
    process.stdout.write(`${span.name} ${span.traceId} ${span.spanId}\n`)
  }

  async flush () {}
  async close () {}
}

module.exports = { ConsoleSink }
