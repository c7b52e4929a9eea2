'use strict'

const { startSink } = require('./otlp-sink')
const { tracedApp } = require('./traced-app')

/** An app whose requests are not sampled, but recorded. sent() returns the spans when all accepted ones have arrived. */
async function recordedApp (t, trace, routes) {
  const sink = await startSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url }, sampler: 0, recorder: true, ...trace },
    routes
  })
  const sent = async () => {
    await app.lightTrace.flush()
    return sink.waitFor(app.lightTrace.stats().spans.accepted)
  }
  return { app, sink, sent }
}

/** Checks that the span counters of stats() add up. */
function identity (t, app) {
  const { ended, accepted, unsampled, recorded, started, queued, inFlight, delivered, thinned, dropped } = app.lightTrace.stats().spans
  t.equal(ended, accepted + unsampled + recorded)
  t.equal(started, ended)
  t.equal(accepted, delivered + thinned + queued + inFlight + Object.values(dropped).reduce((sum, count) => sum + count, 0))
}

module.exports = { recordedApp, identity }
