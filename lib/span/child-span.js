'use strict'

// A span that is not the request's own: made by hand, by the OpenTelemetry API, or for an outgoing call.

const { RecordingSpan } = require('./recording-span')
const { cleanValue } = require('./attributes')
const { newSpanId } = require('../context/ids')
const { PARENT_NONE } = require('../context/trace-context')

class ChildSpan extends RecordingSpan {
  /**
   * @param {Pipeline} pipeline
   * @param {number} start milliseconds on the monotonic clock
   * @param {string} name
   * @param {number} kind as the API counts: 0 internal, 1 server, 2 client, 3 producer, 4 consumer
   * @param {{ name: string, version?: string }} scope
   */
  constructor (pipeline, start, name, kind, scope) {
    super(pipeline, start)
    this.title = name
    this.kind = kind
    this.scope = scope
  }

  get name () { return this.details === null || this.details.name === '' ? this.title : this.details.name }

  /**
   * Takes trace, flags and parent from a TraceContext and draws a span id.
   * @param {TraceContext} parent
   * @param {number} parentKind PARENT_LOCAL or PARENT_REMOTE
   */
  descend (parent, parentKind) {
    this.t0 = parent.t0
    this.t1 = parent.t1
    this.t2 = parent.t2
    this.t3 = parent.t3
    this.flags = parent.flags
    this.tracestate = parent.tracestate
    if (parentKind !== PARENT_NONE) {
      this.p0 = parent.s0
      this.p1 = parent.s1
      this.parentKind = parentKind
    }
    newSpanId(this)
    return this
  }

  /** Takes over a flat list of attributes that instrumentation made for this span: no key comes twice. */
  describe (list) {
    const { attributes, attributeValueLength } = this.pipeline.limits
    for (let i = 1; i < list.length; i += 2) {
      if (typeof list[i] === 'string') list[i] = cleanValue(list[i], attributeValueLength)
    }
    if (list.length > attributes * 2) {
      this.detail().droppedAttributes += list.length / 2 - attributes
      list.length = attributes * 2
    }
    this.attributeList = list
  }
}

module.exports = { ChildSpan }
