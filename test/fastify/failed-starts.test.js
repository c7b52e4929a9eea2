'use strict'

// If the start of a span fails halfway, the request is still served, and all that was started ends.

const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')

const IDS = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 }

/** A span of an SDK whose first isRecording() returns true and whose later ones throw. */
class FailingSpan {
  asked = 0
  ended = 0

  spanContext () { return IDS }
  setAttribute () { return this }
  end () { this.ended++ }

  isRecording () {
    if (this.asked++ > 0) throw new Error('mine')
    return true
  }
}

test('a span whose isRecording throws ends with its request, and the request is measured', { skip: without('sdk') }, async (t) => {
  const span = new FailingSpan()
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, tracerProvider: { getTracer: () => ({ startSpan: () => span }) }, attributes: () => ({ a: 1 }), metrics: true },
    routes: (app) => app.get('/', async ({ trace }) => trace.traceId)
  })
  const { statusCode, body } = await app.inject('/')
  t.same([statusCode, body], [200, IDS.traceId])
  t.equal(span.ended, 1)
  const { started, ended } = app.lightTrace.stats().spans
  t.same([started, ended], [1, 1])
})
