'use strict'

const assert = require('node:assert')
const bench = require('./harness')
const { parseTraceparent, formatTraceparent } = require('../../lib/context/traceparent')
const { cleanTracestate } = require('../../lib/context/tracestate')
const { TraceContext } = require('../../lib/context/trace-context')

const HEADER = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const WRONG = HEADER.replace('4bf92', '4BF92')
const target = Object.assign(new TraceContext(), { p0: 0, p1: 0 })

bench('traceparent: parse', {
  step: 2,
  check () {
    assert.strictEqual(parseTraceparent(HEADER, target), true)
    assert.strictEqual(target.traceId, '4bf92f3577b34da6a3ce929d0e0e4736')
    assert.deepStrictEqual([target.p0, target.p1, target.flags], [0x00f067aa, 0x0ba902b7, 1])
  },
  run (times) {
    for (let i = 0; i < times; i++) parseTraceparent(HEADER, target)
  },
  bytesMax: 4
})

bench('traceparent: refuse', {
  check: () => assert.strictEqual(parseTraceparent(WRONG, target), false),
  run (times) {
    for (let i = 0; i < times; i++) parseTraceparent(WRONG, target)
  },
  bytesMax: 4
})

let text = ''
bench('traceparent: format', {
  check () {
    parseTraceparent(HEADER, target)
    target.s0 = target.p0
    target.s1 = target.p1
    assert.strictEqual(formatTraceparent(target), HEADER)
  },
  run (times) {
    for (let i = 0; i < times; i++) text = formatTraceparent(target)
    assert.strictEqual(text, HEADER)
  }
})

// Uses many values, so that none is cached from the previous call.
const TRACESTATES = Array.from({ length: 64 }, (_, i) => `rojo=00f067aa0ba902${i.toString(16).padStart(2, '0')},congo=t61rcWkgMzE`)
bench('tracestate: clean', {
  check () {
    for (const tracestate of TRACESTATES) assert.strictEqual(cleanTracestate(tracestate), tracestate)
  },
  run (times) {
    for (let i = 0; i < times; i++) text = cleanTracestate(TRACESTATES[i & 63])
    assert.strictEqual(text, TRACESTATES[(times - 1) & 63])
  }
})
