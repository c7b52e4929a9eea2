'use strict'

const assert = require('node:assert')
const bench = require('./harness')
const { newTraceId, newSpanId, hex } = require('../../lib/context/ids')
const { TraceContext } = require('../../lib/context/trace-context')

const target = new TraceContext()

bench('ids: a trace id and a span id', {
  step: 2,
  check () {
    const seen = new Set()
    for (let i = 0; i < 5000; i++) {
      newTraceId(target)
      newSpanId(target)
      assert.match(target.traceId + target.spanId, /^[0-9a-f]{48}$/)
      seen.add(target.traceId).add(target.spanId)
    }
    assert.strictEqual(seen.size, 10_000)
  },
  run (times) {
    for (let i = 0; i < times; i++) {
      newTraceId(target)
      newSpanId(target)
    }
  },
  bytesMax: 4
})

let text = ''
bench('ids: one word as hex', {
  check: () => assert.strictEqual(hex(-559038737), 'deadbeef'),
  run (times) {
    for (let i = 0; i < times; i++) text = hex(i)
    assert.strictEqual(text, hex(times - 1))
  }
})
