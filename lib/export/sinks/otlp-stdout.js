'use strict'

// `OTEL_TRACES_EXPORTER=otlp/stdout`: OTLP as lines of JSON on standard output, for platforms that collect nothing else.
// A line goes out when a request has ended, with the spans that ended before; what belongs to no request goes at the end
// of the loop's turn. So nothing waits where a process is frozen after its answer, and hardly anything in a crash.
// https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/

const { PARENT_LOCAL } = require('../../context/trace-context')
const { requestJson } = require('../../otlp/span-json')
const { setImmediate } = require('../../runtime/timers')
const { toStdout } = require('./console')

// A line that is much longer is cut in pieces by who collects it: containerd at 16 KiB, Cloud Logging at 256 KiB.
const SPANS_PER_LINE_MAX = 16

class OtlpStdoutSink {
  #resource
  #stats
  #write
  #pending = []
  #isScheduled = false

  constructor (resource, stats, write = toStdout()) {
    this.#resource = resource
    this.#stats = stats
    this.#write = write
  }

  accept (span) {
    this.#stats.handedOver++
    this.#pending.push(span)
    if (span.parentKind !== PARENT_LOCAL || this.#pending.length >= SPANS_PER_LINE_MAX) this.#writeAll()
    else this.#schedule()
  }

  async flush () {
    this.#writeAll()
  }

  async close () {
    this.#writeAll()
  }

  #schedule () {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#writeAll()
    })
  }

  #writeAll () {
    if (this.#pending.length > 0) this.#write(requestJson(this.#resource, this.#pending.splice(0)))
  }
}

module.exports = { OtlpStdoutSink }
