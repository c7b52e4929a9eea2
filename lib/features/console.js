'use strict'

// The sinks that write to standard output. `exporter: 'console'` draws the spans of each request as a tree.
// `OTEL_TRACES_EXPORTER=otlp/stdout` writes OTLP as lines of JSON. `light-trace/testing` draws the same trees.

const { PARENT_LOCAL } = require('../context/trace-context.js')
const { setImmediate } = require('../runtime/timers.js')
const { toStdout, oneLine } = require('../export/stdout.js')
const { cut } = require('../span/attributes.js')
const { requestJson } = require('../otlp/json.js')

const KIND_NAMES = ['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']
const STATUS_CODES = ['UNSET', 'OK', 'ERROR']
// A request that never ends must not hold its children forever.
const HELD_MAX = 1000
// Log collectors split very long lines: containerd at 16 KiB, Cloud Logging at 256 KiB.
const SPANS_PER_LINE_MAX = 16
const REASON_LENGTH_MAX = 100

/**
 * Draws spans as a tree, one line each. Children are indented by two spaces below their parent:
 *
 *   SERVER GET /orders/:id ERROR error.type=500
 *     INTERNAL load order
 *       CLIENT GET
 *
 * @param {object[]} spans in start order, each with traceId, spanId and parentSpanId
 */
function drawTree (spans, line) {
  const roots = []
  const children = new Map(spans.map(({ traceId, spanId }) => [traceId + spanId, []]))
  for (const span of spans) {
    const { traceId, spanId, parentSpanId } = span
    const siblings = parentSpanId === spanId ? roots : children.get(traceId + parentSpanId) ?? roots
    siblings.push(span)
  }
  const lines = []
  // Not recursive: a chain of children may be deeper than the call stack.
  const todo = roots.reverse().map((span) => ({ span, depth: 0 }))
  while (todo.length > 0) {
    const { span, depth } = todo.pop()
    const indent = '  '.repeat(depth)
    lines.push(indent + line(span).replace('\n', `\n${indent}`))
    for (const child of children.get(span.traceId + span.spanId).toReversed()) todo.push({ span: child, depth: depth + 1 })
  }
  return lines.join('\n')
}

/** 'SERVER GET /slow ERROR error.type=aborted' */
function spanLabel ({ kind, name, status, errorType }) {
  return `${kind} ${oneLine(name)}${status === 'UNSET' ? '' : ` ${status}`}${status === 'ERROR' ? typeText(errorType) : ''}`
}

function typeText (errorType) {
  return errorType === undefined ? '' : ` error.type=${oneLine(String(errorType))}`
}

function kindName (kind) {
  return KIND_NAMES[kind] ?? 'INTERNAL'
}

function statusName (code) {
  return STATUS_CODES[code] ?? 'UNSET'
}

/**
 * Writes each request as a tree when it has ended. Spans that end later, or belong to no request, are written at once. A trace may
 * have several requests in this process, nested in each other: each is written with its own descendants.
 */
class ConsoleSink {
  #stats
  #write
  #traces = new Map() // trace id -> { open: ids of unfinished local roots, held: lines of ended spans }

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
    const line = lineOf(span)
    const trace = this.#traces.get(line.traceId)
    if (trace === undefined) return this.#print([line])
    trace.held.push(line)
    if (trace.open.delete(line.spanId)) this.#rootEnded(line, trace)
    else if (trace.held.length >= HELD_MAX) this.#print(trace.held.splice(0))
  }

  // Forgets an unsampled request and writes the lines that waited for it.
  discarded (span) {
    if (span.parentKind === PARENT_LOCAL) return
    const trace = this.#traces.get(span.traceId)
    if (trace === undefined || !trace.open.delete(span.spanId) || trace.open.size > 0) return
    this.#traces.delete(span.traceId)
    if (trace.held.length > 0) this.#print(trace.held)
  }

  #rootEnded (root, trace) {
    const under = trace.open.size === 0 ? new Set(trace.held) : descendants(root, trace.held)
    trace.held = trace.held.filter((line) => !under.has(line))
    if (trace.open.size === 0) this.#traces.delete(root.traceId)
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

/** What is kept of a span: its line, and its place in the tree. */
function lineOf (span) {
  const { traceId, spanId, parentSpanId, start, name, attributes } = span
  const status = statusName(span.status.code)
  const errorType = attributes['error.type']
  const label = spanLabel({ kind: kindName(span.kind), name, status, errorType })
  const duration = `${(span.endedAt - start).toFixed(2)} ms`
  const text = span.parentKind === PARENT_LOCAL
    ? `${label} ${duration}`
    : `${label}${status === 'UNSET' ? typeText(errorType) : ''}${reasonOf(span)} ${duration} trace_id=${traceId}${waitsOf(attributes)}`
  return { traceId, spanId, parentSpanId, start, text }
}

/** The message of a request's exception, shortened. A 4xx has one too, although its status is unset. */
function reasonOf ({ events }) {
  const message = events.findLast(({ name }) => name === 'exception')?.attributes['exception.message']
  if (typeof message !== 'string' || message === '') return ''
  return ` (${oneLine(message.length > REASON_LENGTH_MAX ? `${cut(message, REASON_LENGTH_MAX - 3)}...` : message)})`
}

// The viewer uses the same order.
const WAITS = [
  ['light_trace.time.idle', 'waiting'], ['light_trace.time.busy', 'busy event loop'], ['light_trace.time.gc', 'garbage collection'], ['light_trace.time.unscheduled', 'not running']
]

/** A second line for a slow request, which says what it waited for: see docs/slow.md. */
function waitsOf (attributes) {
  const parts = WAITS.map(([key, name]) => ({ name, ms: attributes[key] * 1000 })).filter(({ ms }) => ms >= 1).sort((a, b) => b.ms - a.ms)
  return parts.length === 0 ? '' : `\n  slow: ${parts.map(({ name, ms }) => `${ms.toFixed(0)} ms ${name}`).join(', ')}`
}

// Finds a root and its descendants. The lines may be in any order.
function descendants (root, lines) {
  const found = new Set([root])
  const ids = new Set([root.spanId])
  for (let before = 0; before < found.size;) {
    before = found.size
    for (const line of lines) {
      if (!ids.has(line.parentSpanId)) continue
      found.add(line)
      ids.add(line.spanId)
    }
  }
  return found
}

/**
 * Writes OTLP as lines of JSON, for platforms that collect nothing else. A line is written when a request ends, so that nothing is
 * pending if the platform freezes the process after the response. Spans without a request are written at the end of the turn.
 * https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
 */
class OtlpStdoutSink {
  #resource
  #stats
  #write
  #pending = []
  #isScheduled = false

  constructor (resource, stats, write = toStdout()) {
    this.#resource = resource
    this.#stats = stats
    this.#write = write
  }

  accept (span) {
    this.#stats.handedOver++
    this.#pending.push(span)
    if (span.parentKind !== PARENT_LOCAL || this.#pending.length >= SPANS_PER_LINE_MAX) this.#writeAll()
    else if (!this.#isScheduled) {
      this.#isScheduled = true
      setImmediate(() => this.#writeAll())
    }
  }

  async flush () { this.#writeAll() }
  close () { return this.flush() }

  #writeAll () {
    this.#isScheduled = false
    if (this.#pending.length > 0) this.#write(requestJson(this.#resource, this.#pending.splice(0)))
  }
}

function output ({ settings: { exporter, resource }, stats }) {
  if (exporter.kind === 'console') return { mode: 'console', reason: 'spans go to stdout', sink: new ConsoleSink(stats) }
  return { mode: 'otlp/stdout', reason: 'spans go to stdout as OTLP JSON', sink: new OtlpStdoutSink(resource, stats) }
}

module.exports = { output, drawTree, spanLabel, kindName, statusName, WAITS, ConsoleSink, OtlpStdoutSink }
