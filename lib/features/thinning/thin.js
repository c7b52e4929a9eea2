'use strict'

// Thins encoded spans when a buffer is full. It drops whole traces, chosen by the random bits of their ids, and records in the trace
// state of each remaining span how many spans it represents. Services that do the same keep the same traces, and sums over spans stay
// correct.
//
//   level 1   half of the traces remain  ot=th:8
//   level 2   a quarter                  ot=th:c
//   level 3   an eighth                  ot=th:e
//
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { thresholdOf, randomnessOf, withThreshold, thresholdText } = require('../../context/tracestate.js')
const { spansIn, chunkOf, chunkLength, fieldEnd, bodyStart, TAG_TRACE_STATE } = require('../../otlp/request.js')

const LEVEL_MAX = 24 // each span represents 16 million
// For each level: a trace is kept if the first 24 of its random bits are at least this.
const LIMITS = Array.from({ length: LEVEL_MAX + 1 }, (_, level) => 2 ** 24 - 2 ** (24 - level))
const THRESHOLDS = LIMITS.map((limit) => thresholdText(limit, 0)) // the values of `th`

// Callers may send any trace state. A threshold above this level is trusted only in a chunk that was itself thinned to that level. No
// real sampler keeps so few traces.
const TOLD_LEVEL_MAX = 20 // one in a million

// Fields of a span, by the first byte of their tag, and their values in OTLP.
const PARENT_SPAN_ID = 0x22
const KIND = 0x30
const STATUS = 0x7a
const KIND_SERVER = 2
const KIND_CONSUMER = 5
const STATUS_CODE = 0x18
const STATUS_ERROR = 2

const TRACE_ID_END = 23 // from a span's start: see lib/otlp/templates.js
const RANDOM = TRACE_ID_END - 7

// If the spans that a level may drop are less than this part of a chunk's bytes, the next level is tried: a level frees nothing among
// spans that a sampler has already thinned as much.
const FREED_MIN = 1 / 2
// Failed requests are thinned too if they take more than FREED_MIN of a chunk, but not if they are smaller than this part of a full
// chunk. A chunk that was sealed soon after its first request is short, and thinning its few failed requests would free little memory.
// It is merged with others once they have the same level.
const FAILED_FEW = 1 / 4

/**
 * Thins the spans of an uncompressed chunk by one level or more. Failed requests and their children are kept until they take most of
 * a chunk that is not short; then they are thinned too, by fewer levels.
 *
 * The levels are chosen before any random bits are read, and every remaining span records its level, even if no span was dropped. If
 * the random bits influenced the level, sums over spans would be biased.
 * @param {{ bytes: Buffer, length: number, failedLevel: number, chunkBytes: number, bytesMax?: number, failedBeside?: Set<number>[] }} chunk
 *   chunkBytes: the size of a full chunk; bytesMax: the maximum size of the result, including the new thresholds; failedBeside: the
 *   results of `failedIn` for the neighbouring chunks
 * @param {number} level the minimum level, 1 to LEVEL_MAX
 * @param {Claims} [claims] of the buffer
 * @returns {{ bytes: Buffer, spans: number, surplus: number, level: number, failedLevel: number }} the remaining spans, copied;
 *   surplus: the number of dropped spans that no remaining span represents
 */
function thin ({ bytes, length, failedLevel, chunkBytes, bytesMax = Infinity, failedBeside = [] }, level, claims = new Claims()) {
  const failedTraces = new Set()
  for (const traces of failedBeside) for (const trace of traces) failedTraces.add(trace)
  const spans = readSpans(bytes, length, failedTraces, THRESHOLDS[Math.max(TOLD_LEVEL_MAX, level - 1)])
  const failedBytes = bytesOf(spans, true)
  const areFew = failedBytes < FAILED_FEW * chunkBytes
  const least = FREED_MIN * (bytesOf(spans, false) + (areFew ? 0 : failedBytes))
  // The level of failed requests comes first: they are kept if the other spans can free enough at any level.
  let failed = failedLevel
  while (failed < LEVEL_MAX && mayGo(spans, LEVEL_MAX, failed) < least) failed++
  level = Math.max(level, failed)
  while (level < LEVEL_MAX && mayGo(spans, level, failed) < least) level++
  const all = stayingOf(spans, level, failed)
  const stay = claims.hold(bytes, spans, all, 2 ** level).slice()
  // Drops single spans and not another level, because the random bits would influence the level.
  while (chunkLength(stay) > bytesMax) stay.splice(stay.findLastIndex(({ text }) => text !== ''), 1)
  return { bytes: chunkOf(bytes, stay), spans: stay.length, surplus: all.length - stay.length, level, failedLevel: failed }
}

// Callers choose their ids, and could choose ids that are always kept: after twenty levels each would represent a million spans.
const DEVIATIONS_MAX = 4
const LUCK = 2 // traces that may remain by chance when almost none are expected to
// Spans of one trace are kept or dropped together, so sums over them vary more. The allowance for this is limited, so that a caller
// cannot raise it by using one id for many requests.
const TRACE_REQUESTS_MAX = 2
const TRACE_SPANS_MIN = 4
const FORGET = 0.99 // the weight of the past at each new chunk: about a hundred chunks count

/**
 * Compares how many spans a buffer's spans represent before and after thinning. With random ids the two numbers differ only by
 * chance, by a few standard deviations. Spans beyond that are dropped and no other span represents them, starting with the traces
 * that represent the most.
 */
class Claims {
  #excess = 0
  #variance = 0
  #spans = 0
  #requests = 0

  /** @param {EncodedSpan[]} stay the remaining spans, with their new texts @param {number} weight of the level @returns {EncodedSpan[]} */
  hold (bytes, spans, stay, weight) {
    this.#excess *= FORGET
    this.#variance *= FORGET
    this.#spans *= FORGET
    this.#requests *= FORGET
    const traces = new Map()
    for (const span of spans) {
      if (span.weight === 0) continue
      this.#spans++
      if (span.isRequest) this.#requests++
      const trace = traceOf(bytes, span)
      const found = traces.get(trace)
      if (found === undefined) traces.set(trace, { spans: 1, before: span.weight, after: 0, isSurplus: false })
      else {
        found.spans++
        found.before += span.weight
      }
    }
    for (const span of stay) if (span.weight > 0) traces.get(traceOf(bytes, span)).after += span.claim
    return this.#count(traces, weight) ? stay : stay.filter((span) => span.weight === 0 || !traces.get(traceOf(bytes, span)).isSurplus)
  }

  /** Returns whether all traces may stay; otherwise marks the surplus ones. */
  #count (traces, weight) {
    const spansMax = Math.max(TRACE_SPANS_MIN, TRACE_REQUESTS_MAX * this.#spans / Math.max(1, this.#requests))
    let clumpMax = 0
    for (const { spans, before, after } of traces.values()) {
      const clump = Math.min(spans, spansMax)
      clumpMax = Math.max(clumpMax, clump)
      this.#excess += after - before
      this.#variance += clump * before * Math.max(0, weight - before / spans)
    }
    this.#excess = Math.max(0, this.#excess)
    const most = DEVIATIONS_MAX * Math.sqrt(this.#variance) + LUCK * clumpMax * weight
    if (this.#excess <= most) return true
    for (const trace of [...traces.values()].sort((a, b) => b.after - a.after)) {
      if (this.#excess <= most) break
      trace.isSurplus = true
      this.#excess -= trace.after
    }
    return false
  }
}

function bytesOf (spans, isOfFailed) {
  return spans.reduce((total, { isProtected, start, end }) => isProtected === isOfFailed ? total + end - start : total, 0)
}

/** The bytes of the spans that the levels may drop. */
function mayGo (spans, level, failedLevel) {
  let byteCount = 0
  for (const { isProtected, state, start, end } of spans) {
    const own = isProtected ? failedLevel : level
    if (own > 0 && state.threshold < THRESHOLDS[own]) byteCount += end - start
  }
  return byteCount
}

class EncodedSpan {
  constructor (run, start, end) {
    this.run = run // the bounds of the start of its scope_spans
    this.start = start
    this.end = end
    this.random = 0 // the first 24 of the 56 random bits
    this.isRequest = false // the first span of its trace in this process
    this.isProtected = false // belongs to a failed request
    this.state = NO_STATE
    this.stateStart = end // where its trace state begins, with its tag, or would begin
    this.stateEnd = end
    this.text = '' // its new trace state; '' leaves the old one
    this.weight = 0 // how many spans it represented before this thinning; 0 if it is not thinned
    this.claim = 0 // how many spans it represents if it remains
  }
}

/** A trace state, shared by the spans that have it, and its text with the threshold of each level. */
class State {
  constructor (text) {
    this.text = text
    this.threshold = thresholdOf(text)
    this.weight = 2 ** 24 / (2 ** 24 - Math.min(parseInt(`0${this.threshold}`.padEnd(7, '0').slice(0, 7), 16), 2 ** 24 - 1))
    const random = randomnessOf(text)
    this.random = random === '' ? -1 : parseInt(random.slice(0, 6), 16)
    this.isDoubted = false
    this.asDoubted = null
    this.atLevel = []
  }

  /** The same trace state, untrusted: a span with it represents only itself. */
  get doubted () { return (this.asDoubted ??= Object.assign(new State(this.text), { threshold: '', weight: 1, isDoubted: true })) }

  at (level) { return (this.atLevel[level] ??= withThreshold(this.text, THRESHOLDS[level])) }
}

const NO_STATE = new State('')
const STATES_MAX = 256
const states = new Map()

/** The traces of failed requests, as `traceOf` identifies them. The children of some of these requests are in the previous chunk. */
function failedIn (bytes, length) {
  const traces = new Set()
  readSpans(bytes, length, traces, '')
  return traces
}

/** @param {Set<number>} protectedTraces receives the traces of failed requests @param {string} thresholdMax higher thresholds are not trusted */
function readSpans (bytes, length, protectedTraces, thresholdMax) {
  const spans = spansIn(bytes, length, (run, start, end, last) => {
    const span = readSpan(bytes, new EncodedSpan(run, start, end), last)
    if (span.state.threshold > thresholdMax) span.state = span.state.doubted
    if (span.isProtected) protectedTraces.add(traceOf(bytes, span))
    return span
  })
  if (spans === null) throw new RangeError('the bytes are no chunk')
  if (protectedTraces.size > 0) for (const span of spans) span.isProtected ||= protectedTraces.has(traceOf(bytes, span))
  return spans
}

/** The last 32 bits of the trace id, which are enough to identify a trace within a chunk. */
function traceOf (bytes, { start }) {
  const end = start + TRACE_ID_END
  return bytes[end - 4] << 24 | bytes[end - 3] << 16 | bytes[end - 2] << 8 | bytes[end - 1]
}

function readSpan (bytes, span, last) {
  let hasParent = false
  let hasFailed = false
  let kind = 0
  span.random = bytes[span.start + RANDOM] << 16 | bytes[span.start + RANDOM + 1] << 8 | bytes[span.start + RANDOM + 2]
  for (let at = span.start + TRACE_ID_END; at < span.end;) {
    const tag = bytes[at]
    const end = fieldEnd(bytes, at, span.end)
    if (end === -1) throw new RangeError('a field reaches over the end of its span')
    if (tag === TAG_TRACE_STATE) {
      span.stateStart = at
      span.stateEnd = end
      span.state = last !== undefined && isSame(bytes, last, span) ? last.state : stateOf(bytes.latin1Slice(bodyStart(bytes, at + 1), end))
      if (span.state.random !== -1) span.random = span.state.random
    } else if (tag === PARENT_SPAN_ID) {
      hasParent = true
    } else if (tag === KIND) {
      kind = bytes[at + 1]
    } else if (tag === STATUS) {
      hasFailed = bytes[end - 2] === STATUS_CODE && bytes[end - 1] === STATUS_ERROR
    }
    at = end
  }
  span.isRequest = !hasParent || kind === KIND_SERVER || kind === KIND_CONSUMER
  span.isProtected = hasFailed && span.isRequest
  return span
}

/** Whether two spans have the same bytes of trace state, as spans of one sampler do. Creating a string for each would take most of the time. */
function isSame (bytes, { stateStart: a, stateEnd }, { stateStart: b, stateEnd: end }) {
  if (stateEnd - a !== end - b) return false
  while (b < end && bytes[a] === bytes[b]) {
    a++
    b++
  }
  return b === end
}

function stateOf (text) {
  let state = states.get(text)
  if (state !== undefined) return state
  if (states.size >= STATES_MAX) states.clear() // a caller may send a different one with each request
  states.set(text, state = new State(text))
  return state
}

/** Returns the spans that remain at the levels, and sets their new trace states. */
function stayingOf (spans, level, failedLevel) {
  const stay = []
  for (const span of spans) {
    const own = span.isProtected ? failedLevel : level
    // Hex fractions without trailing zeros sort like text; '', no threshold, comes first.
    const isThinned = own > 0 && span.state.threshold < THRESHOLDS[own]
    if (isThinned) {
      span.weight = span.state.weight
      span.claim = 2 ** own
    }
    if (span.random < LIMITS[own]) continue
    stay.push(span)
    if (isThinned || span.state.isDoubted) span.text = span.state.at(own)
  }
  return stay
}

module.exports = { thin, failedIn, Claims, LEVEL_MAX }
