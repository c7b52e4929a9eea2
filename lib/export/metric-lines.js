'use strict'

// `metrics: { exporter: 'otlp/stdout' }`: each collection as a line of OTLP JSON on standard output, for platforms that
// collect nothing else. What is written counts as delivered.
// https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/

const clock = require('../span/clock')
const { MetricJson } = require('../otlp/metric-json')
const { setImmediate } = require('../runtime/timers')

const NO_RETRY = Object.freeze({ retryMs: -1, isAsked: false })

class MetricLines {
  #registry
  #json
  #takesDeltas
  #write
  #stats
  #writtenMs = -Infinity

  /** @param {{ registry: MetricRegistry, resource: object, takesDeltas: boolean, write (line: string): void, stats: object }} options */
  constructor ({ registry, resource, takesDeltas, write, stats }) {
    this.#registry = registry
    this.#json = new MetricJson(resource, takesDeltas)
    this.#takesDeltas = takesDeltas
    this.#write = write
    this.#stats = stats
  }

  hold () {}
  abort () {}
  close () {}

  /** Collects and writes. See MetricReader. */
  async send () {
    const nowMs = clock.now()
    for (const line of this.#json.encode(this.#registry.scopes(), nowMs, this.#writtenMs)) {
      if (line !== null) this.#writeLine(line)
      else await new Promise((resolve) => setImmediate(resolve))
    }
    this.#writtenMs = nowMs
    if (this.#takesDeltas) this.#registry.startInterval(nowMs)
    return NO_RETRY
  }

  #writeLine (line) {
    this.#write(String(line))
    for (const delta of line.deltas) delta.delivered()
    this.#stats.exportsOk++
    this.#stats.delivered += line.points
  }
}

module.exports = { MetricLines }
