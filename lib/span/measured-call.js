'use strict'

// The spans of calls where metrics are on: their end is counted. A call of a request that is not sampled has one too,
// which goes nowhere: metrics need what it says.

const { SAMPLED, copyTrace } = require('../context/trace-context')
const { readSpanContext } = require('../context/parent')
const { ChildSpan } = require('./child-span')
const { NonRecordingSpan } = require('./non-recording-span')
const { setAttribute, setAttributes } = require('./attributes')
const { now, fromTimeInput } = require('./clock')

const ATTRIBUTES_MAX = 128
const VALUE_LENGTH_MAX = 1024

class MeasuredCallSpan extends ChildSpan {
  /** @param {CallMetrics} calls; the others are ChildSpan's */
  constructor (pipeline, start, name, kind, scope, calls) {
    super(pipeline, start, name, kind, scope)
    this.calls = calls
  }

  finish (endedAt) {
    if ((this.flags & SAMPLED) !== 0) super.finish(endedAt)
    else this.#finishUnsampled(endedAt)
    this.calls.ended(this)
  }

  #finishUnsampled (endedAt) {
    this.endedAt = endedAt < this.start ? this.start : endedAt
    this.pipeline.stats.unsampled++
  }
}

/** The same around a span that somebody else makes, or a sampler has asked for: what is set on it is kept in two places. */
class MeasuredForeignCall extends NonRecordingSpan {
  #inner
  #calls

  constructor (inner, start, attributeList, calls) {
    super()
    this.#inner = inner
    this.#calls = calls
    this.start = start
    this.endedAt = start
    this.info = null
    this.attributeList = attributeList
    const trace = readSpanContext(inner)
    if (trace === undefined) return
    copyTrace(trace, this)
    this.s0 = trace.s0
    this.s1 = trace.s1
  }

  isRecording () { return true }
  spanContext () { return this.#inner.spanContext() }
  allAttributes () { return this.attributeList }

  setAttribute (key, value) {
    setAttribute(this.attributeList, key, value, ATTRIBUTES_MAX, VALUE_LENGTH_MAX)
    this.#inner.setAttribute(key, value)
    return this
  }

  setAttributes (attributes) {
    setAttributes(this.attributeList, attributes, ATTRIBUTES_MAX, VALUE_LENGTH_MAX)
    this.#inner.setAttributes(attributes)
    return this
  }

  setStatus (status) {
    this.#inner.setStatus(status)
    return this
  }

  end (endTime) {
    this.endedAt = fromTimeInput(endTime, now())
    this.#inner.end(endTime)
    this.#calls.ended(this)
  }
}

module.exports = { MeasuredCallSpan, MeasuredForeignCall }
