'use strict'

// How spans leave the process, decided once per tracer in the order of design.md D6.

const { Envelope } = require('./otlp/envelope')
const { SpanEncoder } = require('./otlp/span-encoder')
const { Exporter } = require('./export/exporter')
const { ProcessorSink } = require('./export/processors')
const { NothingSink } = require('./export/nothing')
const { ConsoleSink } = require('./export/console')
const store = require('./context/store')
const { SUPPRESSED } = require('./context/suppressed')

function wayOut ({ settings, report, stats }) {
  if (settings.spanProcessors !== null) return new HandOver('processors', new ProcessorSink(settings.spanProcessors, stats, report))
  switch (settings.exporter.kind) {
    case 'console': return new HandOver('console', new ConsoleSink(stats))
    case 'none': return new HandOver('none', new NothingSink(stats))
    default: return new Native(settings, stats, report)
  }
}

/** Our own encoder and exporter. */
class Native {
  #exporter

  constructor (settings, stats, report) {
    this.mode = 'native'
    this.#exporter = new Exporter({
      settings,
      envelope: new Envelope(settings.resource.attributes),
      stats,
      report,
      suppress: (fn) => store.run(SUPPRESSED, fn)
    })
    this.sink = new SpanEncoder(this.#exporter)
  }

  get queued () { return this.#exporter.queued }
  get inFlight () { return this.#exporter.inFlight }
  get bufferBytes () { return this.#exporter.bufferBytes }
  flush (options) { return this.#exporter.flush(options) }
  close () { return this.#exporter.close() }
}

/** Spans go to somebody else as objects; nothing waits here. */
class HandOver {
  constructor (mode, sink) {
    this.mode = mode
    this.sink = sink
    this.queued = 0
    this.inFlight = 0
    this.bufferBytes = 0
  }

  flush (options) { return this.sink.flush(options) }
  close () { return this.sink.close() }
}

module.exports = { wayOut }
