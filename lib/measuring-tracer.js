'use strict'

// A tracer that counts, too. Where metrics are off this file is not loaded, and a Tracer knows nothing of them.

const { SAMPLED, PARENT_LOCAL, PARENT_REMOTE } = require('./context/trace-context')
const { parentIn } = require('./context/parent')
const clock = require('./span/clock')
const { MeasuredCallSpan, MeasuredForeignCall } = require('./span/measured-call')
const { Tracer } = require('./tracer')
const { AppMetrics } = require('./app-metrics')

const KIND_CLIENT = 2

class MeasuringTracer extends Tracer {
  constructor (settings, report, scope) {
    super(settings, report, scope)
    this.metrics = new AppMetrics(this)
  }

  onOpened () {
    this.metrics.open()
  }

  chooseStarter () {
    super.chooseStarter()
    this.starter = this.metrics.measuring(this.starter)
  }

  /** Calls of requests that are not sampled count as well. */
  // HOT, once per outgoing call where metrics are on. Budget: 1 object.
  startCall (callDescriptor, call, context) {
    if (callDescriptor.kind !== KIND_CLIENT) return super.startCall(callDescriptor, call, context)
    const parent = parentIn(context)
    if (parent === undefined) return null
    if (this.sdkInterop !== null && this.sdkInterop.hasClientSpan(context)) return null
    const start = callDescriptor.startedAt === undefined ? clock.now() : callDescriptor.startedAt(call)
    if (!this.decidesByFlags || parent.remote === true) return this.#startForeign(callDescriptor, call, context, start)
    this.stats.started++
    const info = callDescriptor.info === undefined ? null : callDescriptor.info(call)
    const span = new MeasuredCallSpan(this.pipeline, start, info === null ? callDescriptor.name(call) : info.name, callDescriptor.kind, this.scope, this.metrics.calls)
    span.inheritFrom(parent, parent.remote === true ? PARENT_REMOTE : PARENT_LOCAL)
    span.setCallInfo(info, info === null || info.origin === '' ? '' : callDescriptor.target(call, info), callDescriptor.attributes(call))
    if ((span.flags & SAMPLED) !== 0) this.pipeline.started(span, context)
    return span
  }

  #startForeign (callDescriptor, call, context, start) {
    const span = this.startByOptions(callDescriptor, call, context)
    const info = callDescriptor.info === undefined ? null : callDescriptor.info(call)
    const own = callDescriptor.attributes(call) ?? []
    return new MeasuredForeignCall(span, start, info === null ? own : [...info.attributeList, ...own], this.metrics.calls)
  }

  async flush (options) {
    await Promise.all([super.flush(options), this.metrics.flush(options)])
  }

  /** Requests that are not sampled count as ended at once, and are measured when they are over. */
  get isDrained () {
    return false
  }

  async close () {
    await Promise.all([super.close(), this.metrics.close()])
  }

  snapshot () {
    return { ...super.snapshot(), metrics: this.metrics.stats() }
  }
}

module.exports = { MeasuringTracer }
