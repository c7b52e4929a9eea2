'use strict'

// Repeated calls: calls with the same parent and the same shape (library, operation or query summary, and server). Five of them in
// sequence are an N+1 problem, and the parent gets attributes about it. With `outbound.fold` all but the first share one span.
//
// The first calls of each shape form a linked list on the parent, which needs no further objects. The second call of a shape creates
// a CallRun, which sees the ends of these and all later calls. A parent without a CallRun has nothing to do at its end.

const { OPEN } = require('../context/trace-context.js')
const { now } = require('../runtime/timers.js')
const { NO_SHAPE } = require('../span/attributes.js')

// Of one parent. Calls of further shapes are neither folded nor reported as repeated.
const SHAPES_MAX = 16
const REPEATED_MIN = 5
const RECENT = 16 // durations that the median is computed from
const SLOW_TIMES = 10
// A job may run for days. A span of an hour says little, and a crash would lose it.
const FOLD_MS_MAX = 60_000

const OF_ONE_CALL = new Set(['db.query.text', 'db.operation.batch.size'])

/** An application's part. */
class RepeatedCalls {
  constructor (tracer) {
    const { fold } = tracer.settings.outbound
    this.tracer = tracer
    this.foldAfter = fold ? fold.after : 0 // 0: no call is folded
    tracer.repeats = this
  }

  /** Remembers a call that has a span. HOT, once per call. Budget: nothing, where no call is repeated. */
  remember (parent, span) {
    let last = parent.calls
    if (last === null) parent.calls = span
    if (!last) return // this is the first call, or the parent has ended or is not ours and cannot report repeated calls
    let shapes = 1
    for (; last.callShape !== span.callShape && last.nextCall !== null; shapes++) last = last.nextCall
    if (last.callShape !== span.callShape) {
      if (shapes < SHAPES_MAX) last.nextCall = span
      return
    }
    span.run = last.run ??= new CallRun(last, parent)
    span.run.began(span.start)
  }

  /** A FoldedCall for a call that is folded; null for one that gets a span. HOT, once per call where `outbound.fold` is on. */
  fold (parent, callDescriptor, call, context, start, info) {
    let first = parent.calls ?? null
    while (first !== null && first.callShape !== info.shape) first = first.nextCall
    if (first === null) return null
    const run = first.run ??= new CallRun(first, parent)
    return run.count < this.foldAfter ? null : new FoldedCall(this.tracer, callDescriptor, call, context, start, info, run)
  }
}

class CallRun {
  /** @param {ChildSpan} first the first call of the shape @param {RecordedSpan} parent */
  constructor (first, parent) {
    this.next = parent.runs
    parent.runs = this
    this.shape = first.callShape
    this.count = 1
    this.inTurn = 1 // calls that began after all earlier calls had ended
    this.running = 0
    this.endedAt = 0 // of the call that ended last
    this.durations = []
    this.sumMs = 0
    this.ends = 0
    this.slowMs = -1 // -1: must be computed
    this.isOver = false // the parent has ended
    this.fold = null // the span of the folded calls, and below, the values for its attributes
    this.folded = 0
    this.foldEndedAt = 0
    this.foldSumMs = 0
    this.leastMs = Infinity
    this.mostMs = 0
    if (first.endedAt === OPEN) this.running = 1
    else this.note(first.endedAt - first.start, first.endedAt)
  }

  /** @param {number} start in the past if the call is reported only after its end. HOT, once per repeated call. */
  began (start) {
    this.count++
    if (this.running++ === 0 && start >= this.endedAt) this.inTurn++
  }

  // HOT, once per repeated call.
  ended (ms, endedAt) {
    this.running--
    this.note(ms, endedAt)
  }

  note (ms, endedAt) {
    if (endedAt > this.endedAt) this.endedAt = endedAt
    const at = this.ends++ % RECENT
    this.sumMs += ms
    this.durations[at] = ms
    if (at === RECENT - 1) this.slowMs = -1
  }

  /** Whether a call took at most SLOW_TIMES the median of the earlier calls. HOT */
  isFast (ms) {
    if (this.isOver || this.ends === 0) return false
    if (this.slowMs < 0) this.slowMs = SLOW_TIMES * median(this.durations)
    return ms <= this.slowMs
  }

  get isRepeated () { return this.inTurn >= REPEATED_MIN && this.inTurn * 2 > this.count }

  /** Adds an ended call to the span of the folded calls, and returns that span. HOT */
  take (call, ms) {
    const fold = this.fold ??= call.makeSpan(true)
    this.folded++
    this.foldSumMs += ms
    if (ms < this.leastMs) this.leastMs = ms
    if (ms > this.mostMs) this.mostMs = ms
    if (call.endedAt > this.foldEndedAt) this.foldEndedAt = call.endedAt
    this.ended(ms, call.endedAt)
    if (this.foldEndedAt - fold.start >= FOLD_MS_MAX) this.endFold()
    return fold
  }

  endFold () {
    const { fold } = this
    if (fold === null) return
    fold.setAttributes({
      'light_trace.fold.count': this.folded,
      'light_trace.fold.duration.sum': this.foldSumMs / 1000,
      'light_trace.fold.duration.min': this.leastMs / 1000,
      'light_trace.fold.duration.max': this.mostMs / 1000
    })
    fold.end(this.foldEndedAt)
    this.fold = null
    this.folded = this.foldSumMs = this.mostMs = 0
    this.leastMs = Infinity
  }

  /** Calls that are still running get their own spans: they might never end. */
  close () {
    this.isOver = true
    this.endFold()
  }

  /** Runs when the parent ends, before it is passed on. Reports the most repeated calls of all runs, and ends the spans of folded calls. */
  parentEnds (parent) {
    let most = null
    for (let run = this; run !== null; run = run.next) {
      if (run.isRepeated && (most === null || run.inTurn > most.inTurn)) most = run
      run.close()
    }
    parent.runs = null
    if (most === null) return
    parent.setAttribute('light_trace.repeated.shape', labelOf(most.shape))
    parent.setAttribute('light_trace.repeated.count', most.inTurn)
    parent.setAttribute('light_trace.repeated.duration', most.sumMs / 1000)
  }
}

/** A call that gets no span unless it fails or is slow. Callers use it like a span. */
class FoldedCall {
  #span = null // its own span, once it has one

  constructor (tracer, callDescriptor, call, context, start, info, run) {
    this.tracer = tracer
    this.callDescriptor = callDescriptor
    this.call = call
    this.context = context
    this.start = start
    this.info = info
    this.run = run
    this.attributeList = null
    this.endedAt = OPEN
    this.flags = 0
    run.began(start)
  }

  isRecording () { return this.endedAt === OPEN }
  allAttributes () { return this.info.attributeList }

  setAttribute (key, value) {
    this.#own().setAttribute(key, value)
    return this
  }

  setStatus (status) {
    this.#own().setStatus(status)
    return this
  }

  // HOT, once per folded call.
  end (endTime = now()) {
    if (this.endedAt !== OPEN) return
    this.endedAt = endTime < this.start ? this.start : endTime
    const { run, tracer } = this
    const ms = this.endedAt - this.start
    if (this.#span !== null || !run.isFast(ms)) {
      run.ended(ms, this.endedAt)
      return this.#own().end(endTime)
    }
    tracer.stats.folded++
    const span = run.take(this, ms)
    if (tracer.observer !== null) tracer.observer.calls.ended(this, span)
  }

  #own () { return (this.#span ??= this.makeSpan(false)) }

  /** @param {boolean} isFold whether the span represents all folded calls: it then has no attributes of a single call */
  makeSpan (isFold) {
    const span = this.tracer.startCall(this.callDescriptor, this.call, this.context, this, isFold)
    if (!isFold) return span
    span.target = ''
    if (span.attributeList !== null) span.attributeList = span.attributeList.filter((_, i, list) => !OF_ONE_CALL.has(list[i & ~1]))
    span.attributeShape = NO_SHAPE
    return span
  }
}

/** 'redis GET', 'SELECT users' */
function labelOf ({ name, attributeList }) {
  return attributeList.includes('db.operation.name') ? `${attributeList[1]} ${name}` : name
}

const sorted = new Float64Array(RECENT)

/** An insertion sort: V8's built-in sort has to leave JavaScript, which costs more. */
function median (durations) {
  for (let i = 0; i < durations.length; i++) {
    const ms = durations[i]
    let at = i
    for (; at > 0 && sorted[at - 1] > ms; at--) sorted[at] = sorted[at - 1]
    sorted[at] = ms
  }
  return sorted[durations.length >> 1]
}

module.exports = { attach: (tracer) => new RepeatedCalls(tracer) }
