'use strict'

// The calls of one parent that have one shape: the same library, operation or query summary, and server. Five of them one after
// the other are what is called an N+1, and the parent says so. With `outbound.fold` all but the first are one span.
//
// The first call of each shape is a link of a list that hangs on the parent, and nothing is made for it. A second one makes a
// CallRun, which sees the ends of both and of all that come after. A parent without one has nothing to do at its end.

const { OPEN } = require('../context/trace-context.js')
const { now } = require('../runtime/timers.js')
const { NO_SHAPE } = require('../span/attributes.js')

// Of one parent. Calls of further shapes are neither folded nor said to be repeated.
const SHAPES_MAX = 16
const REPEATED_MIN = 5
const RECENT = 16 // durations, of which the median is known
const SLOW_TIMES = 10
// A job may run for days: a span that is an hour long says little, and a crash would lose it.
const FOLD_MS_MAX = 60_000

const OF_ONE_CALL = new Set(['db.query.text', 'db.operation.batch.size'])

/** An application's part. */
class RepeatedCalls {
  constructor (tracer) {
    const { fold } = tracer.settings.outbound
    this.tracer = tracer
    this.foldAfter = fold ? fold.after : 0 // no call is folded
    tracer.repeats = this
  }

  /** Remembers a call that has a span. HOT, once per call. Budget: nothing, where no call is repeated. */
  remember (parent, span) {
    let last = parent.calls
    if (last === null) parent.calls = span
    if (!last) return // the first one; or the parent has ended, or is not ours: nobody would say it
    let shapes = 1
    for (; last.callShape !== span.callShape && last.nextCall !== null; shapes++) last = last.nextCall
    if (last.callShape !== span.callShape) {
      if (shapes < SHAPES_MAX) last.nextCall = span
      return
    }
    span.run = last.run ??= new CallRun(last, parent)
    span.run.began(span.start)
  }

  /** What stands for a call that is folded, or null: it gets a span. HOT, once per call where `outbound.fold` is on. */
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
    this.inTurn = 1 // those that began when all before them had ended
    this.running = 0
    this.endedAt = 0 // of the last to end
    this.durations = []
    this.sumMs = 0
    this.ends = 0
    this.slowMs = -1 // not known
    this.isOver = false // the parent has ended
    this.fold = null // the span of calls that are folded, and what it is to say of them:
    this.folded = 0
    this.foldEndedAt = 0
    this.foldSumMs = 0
    this.leastMs = Infinity
    this.mostMs = 0
    if (first.endedAt === OPEN) this.running = 1
    else this.note(first.endedAt - first.start, first.endedAt)
  }

  /** @param {number} start which is long ago where a call is reported when it is over. HOT, once per repeated call. */
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

  /** Whether a call is as fast as those before it. HOT */
  isFast (ms) {
    if (this.isOver || this.ends === 0) return false
    if (this.slowMs < 0) this.slowMs = SLOW_TIMES * median(this.durations)
    return ms <= this.slowMs
  }

  get isRepeated () { return this.inTurn >= REPEATED_MIN && this.inTurn * 2 > this.count }

  /** Takes a folded call that has ended; returns the span that stands for it. HOT */
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

  /** Calls that still run have spans of their own: one of them might never end. */
  close () {
    this.isOver = true
    this.endFold()
  }

  /** At the parent's end, before it is handed on: says of all runs what was repeated, and ends the spans of what was folded. */
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

/** A call that has no span unless it fails or is slow. It is used as one. */
class FoldedCall {
  #span = null // once it has one of its own

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

  /** @param {boolean} isFold whether it stands for others, too: then it is no call of its own, and has nothing that is one call's */
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

/** By insertion: V8 leaves JavaScript for its own sort. */
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
