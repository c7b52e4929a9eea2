'use strict'

const assert = require('node:assert')
const bench = require('./harness')
const { openTracer, route, peer, newIncoming } = require('./pipeline')

const incoming = newIncoming()

benchRequests('server span: start and close, sampled', openTracer(), { unsampled: 0, step: '3, 4 and 6' })
benchRequests('server span: start and close, unsampled', openTracer({ sampler: 'always_off' }), { unsampled: 1, step: '3 and 6, not sampled' })

function benchRequests (name, tracer, { unsampled, step }) {
  bench(name, {
    step,
    check () {
      const before = tracer.snapshot().spans
      request(tracer)
      const { spans } = tracer.snapshot()
      assert.strictEqual(spans.ended - before.ended, 1)
      assert.strictEqual(spans.unsampled - before.unsampled, unsampled)
    },
    run (times) {
      for (let i = 0; i < times; i++) request(tracer)
    }
  })
}

function request (tracer) {
  incoming.start = performance.now()
  tracer.starter.startServer(incoming, route, peer, '/', null).close(200, '')
}
