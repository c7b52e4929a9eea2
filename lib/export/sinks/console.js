'use strict'

// `exporter: 'console'`: the spans of each request as a readable tree, written when the request has ended.
//
// What ends before its request waits for it; what ends after, or belongs to no request, is written at
// once. A trace may have several requests in this process, one inside the other: each is written with
// what lies under it.

const { PARENT_LOCAL } = require('../../context/trace-context')
const { drawTree, spanLabel, kindName, statusName } = require('./tree')
const { setImmediate } = require('../../runtime/timers')

// A request that never ends must not hold its children for ever.
const HELD_MAX = 1000

class ConsoleSink {
  #stats
  #write
  #traces = new Map() // trace id → { open: local roots that run, held: ended spans, in start order }

  constructor (stats, write = toStdout()) {
    this.#stats = stats
    this.#write = write
  }

  started (span) {
    if (span.parentKind === PARENT_LOCAL) return
    const trace = this.#traces.get(span.traceId)
    if (trace === undefined) this.#traces.set(span.traceId, { open: new Set([span.spanId]), held: [] })
    else trace.open.add(span.spanId)
  }

  accept (span) {
    this.#stats.handedOver++
    const line = new Line(span)
    const trace = this.#traces.get(line.traceId)
    if (trace === undefined) {
      this.#print([line])
      return
    }
    trace.held.push(line)
    if (trace.open.delete(line.spanId)) this.#rootEnded(line, trace)
    else if (trace.held.length >= HELD_MAX) this.#print(trace.held.splice(0))
  }

  /** An unsampled request's span that was recorded for nothing: what was waiting for it is not. */
  discarded (span) {
    if (span.parentKind === PARENT_LOCAL) return
    const trace = this.#traces.get(span.traceId)
    if (trace === undefined || !trace.open.delete(span.spanId) || trace.open.size > 0) return
    this.#traces.delete(span.traceId)
    if (trace.held.length > 0) this.#print(trace.held)
  }

  #rootEnded (root, trace) {
    if (trace.open.size === 0) {
      this.#traces.delete(root.traceId)
      this.#print(trace.held)
      return
    }
    const under = descendants(root, trace.held)
    trace.held = trace.held.filter((line) => !under.has(line))
    this.#print([...under])
  }

  #print (lines) {
    lines.sort((a, b) => a.start - b.start)
    this.#write(drawTree(lines, ({ text }) => text))
  }

  async flush () {}

  async close () {
    for (const { held } of this.#traces.values()) if (held.length > 0) this.#print(held)
    this.#traces.clear()
  }
}

/** What is kept of a span: what is printed, and where. */
class Line {
  constructor (span) {
    const { attributes, status } = span
    this.traceId = span.traceId
    this.spanId = span.spanId
    this.parentSpanId = span.parentSpanId
    this.start = span.start
    const text = spanLabel({
      kind: kindName(span.kind), name: span.name, status: statusName(status.code), errorType: attributes['error.type']
    })
    const ms = (span.endedAt - span.start).toFixed(2)
    this.text = span.parentKind === PARENT_LOCAL ? `${text} ${ms} ms` : `${text} ${ms} ms trace_id=${span.traceId}`
  }
}

// When the reader of a pipe has gone stdout emits an error, which without a listener ends the process. Ours is there only
// while a write of ours is under way: what comes of the app's own writes is the app's.
function toStdout () {
  let underWay = 0
  const ignore = () => {}
  return (text) => {
    const { stdout } = process
    if (underWay++ === 0) stdout.on('error', ignore)
    stdout.write(text + '\n', () => setImmediate(() => { // the error comes after this call
      if (--underWay === 0) stdout.off('error', ignore)
    }))
  }
}

function descendants (root, lines) {
  const found = new Set([root])
  const ids = new Set([root.spanId])
  let before
  do {
    before = found.size
    for (const line of lines) {
      if (found.has(line) || !ids.has(line.parentSpanId)) continue
      found.add(line)
      ids.add(line.spanId)
    }
  } while (found.size !== before)
  return found
}

module.exports = { ConsoleSink, toStdout }
