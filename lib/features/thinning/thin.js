'use strict'

// Thins encoded spans where a buffer is full: whole traces go, by the random bits of their ids, and the trace state of a span that
// stays says for how many it stands. Services that do the same keep the same traces, and a sum over spans stays right.
//
//   level 1   half of the traces stay    ot=th:8
//   level 2   a quarter                  ot=th:c
//   level 3   an eighth                  ot=th:e
//
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { thresholdOf, randomnessOf, withThreshold, thresholdText } = require('../../context/tracestate.js')
const { spansIn, chunkOf, chunkLength, fieldEnd, bodyStart, TAG_TRACE_STATE } = require('../../otlp/request.js')

const LEVEL_MAX = 24 // each span stands for 16 million
// Of 24 bits: a trace stays if its random bits are at least this.
const LIMITS = Array.from({ length: LEVEL_MAX + 1 }, (_, level) => 2 ** 24 - 2 ** (24 - level))
const THRESHOLDS = LIMITS.map((limit) => thresholdText(limit, 0)) // as `th` has them

// A caller's trace state may say anything, so what is above this is believed only of a chunk that has gone through that level itself. No
// sampler is as rare.
const TOLD_LEVEL_MAX = 20 // a million

// Fields of a span, by the first byte of their tag, and values of theirs as OTLP counts them.
const PARENT_SPAN_ID = 0x22
const KIND = 0x30
const STATUS = 0x7a
const KIND_SERVER = 2
const KIND_CONSUMER = 5
const STATUS_CODE = 0x18
const STATUS_ERROR = 2

const TRACE_ID_END = 23 // from a span's start: see lib/otlp/templates.js
const RANDOM = TRACE_ID_END - 7

// A level goes on to the next one where the spans that may go are less than this part of a chunk's: spans of a sampler, which stand
// for more already, would free nothing.
const FREED_MIN = 1 / 2
// Failed requests go where they take more than FREED_MIN of a chunk, but not those few that a short one holds, which was sealed soon
// after the first request: there is no memory to win there. It is joined with others once they are as thin.
const FAILED_FEW = 1 / 4 // of a whole chunk

/**
 * Thins the spans of a chunk that is not compressed, by one level or more. Requests that failed stay as they are, with their
 * children, until they take most of the chunk, and it is not a short one: then they are thinned too, by fewer levels.
 *
 * How far it goes is decided before a random bit is looked at, and each span that stays says so, whether or not others went: else the
 * bits would decide what is decided by them, and no sum would be right.
 * @param {{ bytes: Buffer, length: number, failedLevel: number, chunkBytes: number, bytesMax?: number, failedBeside?: Set<number>[] }} chunk
 *   chunkBytes: how long a whole one is; bytesMax: how long what stays may be, with the thresholds that it gets; failedBeside: what
 *   `failedIn` found in the chunks beside it
 * @param {number} level 1 to LEVEL_MAX, at least
 * @param {Claims} [claims] of the buffer
 * @returns {{ bytes: Buffer, spans: number, surplus: number, level: number, failedLevel: number }} what stays, in memory of its own;
 *   surplus: how many went for which no other stands
 */
function thin ({ bytes, length, failedLevel, chunkBytes, bytesMax = Infinity, failedBeside = [] }, level, claims = new Claims()) {
  const failedTraces = new Set()
  for (const traces of failedBeside) for (const trace of traces) failedTraces.add(trace)
  const spans = readSpans(bytes, length, failedTraces, THRESHOLDS[Math.max(TOLD_LEVEL_MAX, level - 1)])
  const failedBytes = bytesOf(spans, true)
  const areFew = failedBytes < FAILED_FEW * chunkBytes
  const least = FREED_MIN * (bytesOf(spans, false) + (areFew ? 0 : failedBytes))
  // Failed requests first: where the others, by however many levels, free enough, they are left alone.
  let failed = failedLevel
  while (failed < LEVEL_MAX && mayGo(spans, LEVEL_MAX, failed) < least) failed++
  level = Math.max(level, failed)
  while (level < LEVEL_MAX && mayGo(spans, level, failed) < least) level++
  const all = stayingOf(spans, level, failed)
  const stay = claims.hold(bytes, spans, all, 2 ** level).slice()
  // Not by another level: the random bits would decide what is decided by them.
  while (chunkLength(stay) > bytesMax) stay.splice(stay.findLastIndex(({ text }) => text !== ''), 1)
  return { bytes: chunkOf(bytes, stay), spans: stay.length, surplus: all.length - stay.length, level, failedLevel: failed }
}

// Callers choose their ids, and could choose those that always stay: after twenty levels each would stand for a million.
const DEVIATIONS_MAX = 4
const LUCK = 2 // traces that may stay where almost none is expected to
// Spans of one trace stay or go together, so sums over them vary more. One id for many requests is no reason to expect that.
const TRACE_REQUESTS_MAX = 2
const TRACE_SPANS_MIN = 4
const FORGET = 0.99 // of what was, at each chunk: some hundred chunks count

/**
 * Compares what the spans of a buffer stand for with what they stood for before. With random ids the two differ by chance alone, by
 * some standard deviations. Spans beyond that go, and nothing stands for them: of the traces with the most spans first.
 */
class Claims {
  #excess = 0
  #variance = 0
  #spans = 0
  #requests = 0

  /** @param {EncodedSpan[]} stay of the spans, each with the text that it gets @param {number} weight of a level @returns {EncodedSpan[]} */
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

  /** Whether all may stay; else marks the traces that may not. */
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

/** The bytes of spans of which a level keeps a part. */
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
    this.run = run // the bounds of what its scope_spans begin with
    this.start = start
    this.end = end
    this.random = 0 // the first 24 of the 56 random bits
    this.isRequest = false // it is the first of its trace in this process
    this.isProtected = false // it is of a request that failed
    this.state = NO_STATE
    this.stateStart = end // where its trace state stands, with its tag, or would stand
    this.stateEnd = end
    this.text = '' // the trace state that it gets, '' to leave it as it is
    this.weight = 0 // for how many it has stood, where it is thinned now
    this.claim = 0 // for how many it stands if it stays
  }
}

/** A trace state that spans of a chunk have, and what it is with the threshold of a level. */
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

  /** The same, of a span that stands for itself whatever it says. */
  get doubted () { return (this.asDoubted ??= Object.assign(new State(this.text), { threshold: '', weight: 1, isDoubted: true })) }

  at (level) { return (this.atLevel[level] ??= withThreshold(this.text, THRESHOLDS[level])) }
}

const NO_STATE = new State('')
const STATES_MAX = 256
const states = new Map()

/** The traces of the requests that failed, by what `traceOf` tells them apart: the children of some are in the chunk before. */
function failedIn (bytes, length) {
  const traces = new Set()
  readSpans(bytes, length, traces, '')
  return traces
}

/** @param {Set<number>} protectedTraces gets those of failed requests @param {string} thresholdMax what is above it is not believed */
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

/** The last 32 bits of its trace id, which tell traces of one chunk apart. */
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

/** Whether two spans have the same bytes of trace state, as those of one sampler do: a string of each would take most of the time. */
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
  if (states.size >= STATES_MAX) states.clear() // a caller may send another one with each request
  states.set(text, state = new State(text))
  return state
}

/** The spans that stay at a level, with the trace state that each gets. */
function stayingOf (spans, level, failedLevel) {
  const stay = []
  for (const span of spans) {
    const own = span.isProtected ? failedLevel : level
    // Hex fractions without trailing zeros are in the order of their text; none, '', comes first.
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
