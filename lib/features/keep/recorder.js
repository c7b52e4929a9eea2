'use strict'

// The recorder keeps the spans of unsampled requests in a ring buffer, encoded like all others but not sent. The oldest spans are
// overwritten. A kept request or a snapshot copies spans into the exporter's buffer, each span at most once.
//
//   encoder --> open --> [ chunk | chunk | chunk ] --> overwritten
//                              '--release, snapshot--> exporter
//
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { withoutThreshold } = require('../../context/tracestate.js')
const { SpanEncoder } = require('../../otlp/span-encoder.js')
const { encodeAttributes } = require('../../otlp/proto-writer.js')
const { HEAD, OFFSET_END, TAG_ATTRIBUTE } = require('../../otlp/templates.js')
const { fieldEnd, bodyStart, TAG_TRACE_STATE } = require('../../otlp/request.js')
const { Chunk, NO_CHUNK, allocate, chunkBytesFor } = require('../../export/chunk-buffer.js')
const { KEPT, reasonOf } = require('./keep-span.js')
const { monotonicNow, now, setTimeout, clearTimeout, nanosOf } = require('../../runtime/timers.js')
const { counted } = require('../../runtime/report.js')

const SNAPSHOT_REASON = 'light_trace.snapshot.reason'
const LINGER_MS = 1000 // a snapshot lasts this much longer, in order to include requests that were open
const PAUSE_MS = 60_000 // between two automatic snapshots
const GIVE_UP_MS = 30_000 // a snapshot or release ends after this time if the collector is too slow
const STEP_MS = 10
const STEP_SENT_MAX = 256 // spans, a quarter of a millisecond
const STEP_SEEN_MAX = 4096
const SECOND_MS = 1000
const SECONDS_MAX = 86_400 // an upper limit for `seconds`
const SPAN_BYTES_MIN = 128 // of a chunk: bounds the number of spans in it, and so the size of the per-span arrays
const ADDED_BYTES_MAX = 2048 // by a release: scope, trace state, the reason

const GONE = 0 // replaces the owner of a span that was sent
// An encoded key with the last byte of its length, which may be padded. If a span contains one, the application has set that attribute
// itself, and we do not add it again.
const OWN_MARKS = [KEPT, SNAPSHOT_REASON].flatMap((key) => ['\0', String.fromCharCode(key.length)].map((last) => Buffer.from(last + key)))
const NO_ATTRIBUTES = new Uint8Array(0)

/** A chunk of the ring, with data about its spans that is not in the bytes. */
class RingChunk {
  constructor (chunk, sequence, spansMax) {
    this.chunk = chunk
    this.sequence = sequence // the number of earlier chunks
    this.startedAt = now()
    this.owners = new Int32Array(spansMax) // the last 32 bits of the request's span id; GONE: the span was sent
    this.starts = new Uint32Array(spansMax) // where the span begins
    this.runs = [] // { from, scope }: the encoded scope of the spans from index `from` on
    this.scope = null // of the last run
    this.left = 0 // how many were not sent
  }

  get count () { return this.chunk.spans }
  scopeOf (i) { return this.runs.findLast(({ from }) => from <= i).scope }
}

// A chunk without room.
const NO_RING = new RingChunk(NO_CHUNK, 0, 0)

class Recorder {
  #ring = [] // RingChunks, the oldest first; the last one is open
  #last = NO_RING
  #chunksMax
  #spansMax
  #owner = 0
  #settings
  #exporter
  #exported // the encoder of exported spans
  #suppress
  #stats
  /** @type {Report} */ #report
  #omit // which attributes must not leave the process, or null
  #walks = new Set() // Walks through the ring, which proceed step by step
  #snapshot = null // the running snapshot
  #timer = null
  #triggeredAt = -Infinity
  #errors = 0 // in the second that began at #secondAt
  #secondAt = -Infinity
  #isClosed = false

  /**
   * @param {{ maxBytes: number, seconds: number, errorsPerSecond: number, blockedLoop: boolean }} settings
   * @param {{ exporter: Exporter, sink: SpanEncoder, suppress: Function }} output
   */
  constructor (settings, { exporter, sink, suppress }, stats, report, omit) {
    this.#settings = settings
    this.#exporter = exporter
    this.#exported = sink
    this.#suppress = suppress
    this.#stats = stats
    this.#report = report
    this.#omit = omit
    this.chunkBytes = chunkBytesFor(settings.maxBytes)
    this.#chunksMax = Math.floor(settings.maxBytes / this.chunkBytes)
    this.#spansMax = Math.ceil(this.chunkBytes / SPAN_BYTES_MIN)
    this.spanBytesMax = Math.min(this.chunkBytes, exporter.spanBytesMax - ADDED_BYTES_MAX)
    this.encoder = new SpanEncoder(this)
  }

  /** Records a span until its bytes are overwritten. @param {import('./keep-span').KeepServerSpan} root the span of its request */
  // HOT, once per span that is not sampled.
  record (span, root) {
    if (this.#isClosed) return this.dropFailed()
    if (span !== root && root.recordedSince === -1) root.recordedSince = this.#last.sequence
    this.#owner = root.s1
    this.encoder.accept(span)
  }

  // The encoder calls these, as it does with the exporter. Spans that do not fit are counted as unsampled.

  dropFailed () { this.#stats.unsampled++ }
  dropTooLarge () { this.#stats.unsampled++ }
  logCut () {}
  isLong (byteCount) { return byteCount > this.spanBytesMax }

  // HOT, as `record`.
  reserve (byteCount) {
    const { chunk, owners } = this.#last
    if (byteCount > this.spanBytesMax) return null
    return chunk.length + byteCount <= chunk.capacity && chunk.spans < owners.length ? chunk : this.#renew()
  }

  // HOT, as `record`.
  commit (chunk, end) {
    const last = this.#last
    const i = chunk.spans++
    last.owners[i] = this.#owner
    last.starts[i] = chunk.length
    if (chunk.scope !== last.scope) last.runs.push({ from: i, scope: last.scope = chunk.scope })
    last.left++
    chunk.length = end
    this.#stats.recorded++
  }

  get state () {
    const seconds = this.#ring.length === 0 ? 0 : Math.round((now() - this.#ring[0].startedAt) / SECOND_MS)
    return { bytes: this.#ring.length * this.chunkBytes, maxBytes: this.#settings.maxBytes, seconds }
  }

  #renew () {
    const bytes = this.#ring.length < this.#chunksMax ? allocate(this.chunkBytes) : this.#overwrite().chunk.bytes
    if (bytes === null) {
      this.dropFailed()
      return null
    }
    this.#last = new RingChunk(new Chunk(bytes), this.#last.sequence + 1, this.#spansMax)
    this.#ring.push(this.#last)
    return this.#last.chunk
  }

  #overwrite () {
    const oldest = this.#ring.shift()
    this.#snapshot?.miss(oldest)
    this.#stats.recorded -= oldest.left
    this.#stats.unsampled += oldest.left
    return oldest
  }

  /** Sends the children of a request that ended before it: the first STEP_SENT_MAX at once, the rest in later steps. */
  release (root) {
    const walk = new Release(root, this.#omit)
    if (!this.#goOn(walk, { sent: STEP_SENT_MAX, seen: Infinity })) this.#start(walk)
  }

  /**
   * Sends all spans that ended in the last `seconds`, and those that end in the following second. Only one snapshot runs at a time:
   * calls in between return the running one.
   * @param {boolean} [isAwaited] whether it keeps the process alive
   * @returns {Promise<{ spans: number, missed: number }>} never rejects
   */
  snapshot (seconds, reason, isAwaited = true) {
    if (this.#isClosed) return Promise.resolve({ spans: 0, missed: 0 })
    if (this.#snapshot === null) {
      const isGiven = typeof seconds === 'number' && seconds >= 0
      this.#snapshot = new Snapshot(Math.min(isGiven ? seconds : this.#settings.seconds, SECONDS_MAX), reasonOf(reason), this.#omit)
      this.#start(this.#snapshot)
    }
    if (isAwaited) {
      this.#snapshot.isAwaited = true
      this.#timer?.ref()
    }
    return this.#snapshot.done
  }

  /** Counts a 5xx response. */
  serverError (at) {
    if (at - this.#secondAt >= SECOND_MS) {
      this.#secondAt = at
      this.#errors = 0
    }
    if (++this.#errors === this.#settings.errorsPerSecond) this.#trigger('server errors')
  }

  loopBlocked () { if (this.#settings.blockedLoop) this.#trigger('blocked loop') }

  #trigger (reason) {
    const at = monotonicNow()
    if (at - this.#triggeredAt < PAUSE_MS) return
    this.#triggeredAt = at
    this.snapshot(undefined, reason, false)
  }

  #start (walk) {
    this.#walks.add(walk)
    if (this.#timer === null) this.#suppress(this.#arm)
  }

  #arm = () => {
    this.#timer = setTimeout(this.#step, STEP_MS)
    if (this.#snapshot === null || !this.#snapshot.isAwaited) this.#timer.unref()
  }

  #step = () => {
    this.#timer = null
    const budget = { sent: STEP_SENT_MAX, seen: STEP_SEEN_MAX }
    const at = now()
    for (const walk of this.#walks) {
      const isThrough = this.#goOn(walk, budget)
      if ((isThrough && at >= walk.lingersUntil) || at >= walk.givesUpAt) this.#end(walk)
    }
    if (this.#walks.size > 0) this.#arm()
  }

  /** Sends some of the spans that a walk wants, while the exporter's buffer has room. Returns whether it has reached the end of the ring. */
  #goOn (walk, budget) {
    for (const one of this.#ring) {
      if (one.sequence < walk.sequence) continue
      if (one.sequence > walk.sequence) walk.moveTo(one)
      for (let i = walk.next(one); i !== -1; i = walk.next(one)) {
        if (walk.wants(one, i)) {
          if (budget.sent-- <= 0 || !(walk.isUrgent || !this.#exporter.isFilling)) return false
          this.#send(one, i, walk)
        } else if (budget.seen-- <= 0) {
          return false
        }
        walk.index = i + 1
      }
    }
    return true
  }

  #send (one, i, walk) {
    const { bytes, length } = one.chunk
    const span = encodedSpanAt(bytes, one.starts[i], length)
    one.owners[i] = GONE
    one.left--
    this.#stats.recorded--
    this.#stats.accepted++
    const own = bytes.subarray(span.start, span.end)
    const mark = OWN_MARKS.some((key) => own.includes(key)) ? NO_ATTRIBUTES : walk.mark
    try {
      this.#exported.acceptEncoded(bytes, span, one.scopeOf(i), walk.stateOf(span.state), mark)
    } catch (error) { // a bug here would otherwise throw at the end of a request
      this.#exporter.dropFailed(error)
    }
    walk.spans++
  }

  #end (walk) {
    this.#walks.delete(walk)
    if (walk !== this.#snapshot) return
    for (const one of this.#ring) walk.miss(one) // the spans that it did not reach
    this.#snapshot = null
    const { spans, missed, reason, seconds } = walk
    this.#report.info(`a snapshot (${reason}) of ${seconds} s: ${counted(spans, 'span')} sent${missed === 0 ? '' : `, ${missed} missed: the collector takes too few`}`)
    walk.end({ spans, missed })
  }

  /** Sends the waiting children of kept requests. */
  finishReleases () {
    for (const walk of this.#walks) {
      if (walk !== this.#snapshot && this.#goOn(walk, { sent: Infinity, seen: Infinity })) this.#end(walk)
    }
  }

  /** Sends the children of kept requests and drops the rest of the ring. */
  close () {
    this.#isClosed = true
    clearTimeout(this.#timer ?? undefined)
    this.finishReleases()
    for (const walk of this.#walks) this.#end(walk)
    while (this.#ring.length > 0) this.#overwrite()
    this.#last = NO_RING
  }
}

/** A pass through the ring, starting at a chunk. */
class Walk {
  constructor (sequence, attributes, omit) {
    this.sequence = sequence // of the current chunk
    this.index = 0 // of the next span in it
    this.mark = encodeAttributes(TAG_ATTRIBUTE, omit === null ? attributes : omit.strip(attributes))
    this.spans = 0
    this.lingersUntil = -Infinity // it does not end before this time
    this.givesUpAt = now() + GIVE_UP_MS
    this.isUrgent = false // true: it does not wait for room in the exporter's buffer
  }

  moveTo ({ sequence }) {
    this.sequence = sequence
    this.index = 0
  }

  /** The index of the next span to look at, -1 for none. */
  next (one) { return this.index < one.count ? this.index : -1 }
  wants (one, i) { return one.owners[i] !== GONE }
  stateOf (text) { return withoutThreshold(text) }
}

/**
 * The children of a kept request. The first KEPT_CHILDREN_MAX get the threshold of the request. The others get none: they are already
 * represented by the children of sampled requests beyond that number, which are sent with the sampler's threshold.
 */
class Release extends Walk {
  #text = null // the last trace state, and its result below: children usually have the trace state of their request
  #state = ''
  #wasCounted = false

  constructor (root, omit) {
    super(root.recordedSince, [KEPT, root.kept], omit)
    this.root = root
    this.isUrgent = true
  }

  next (one) {
    const i = one.owners.indexOf(this.root.s1, this.index)
    return i < one.count ? i : -1
  }

  stateOf (text) {
    this.isUrgent = this.isUrgent && this.root.takeChild()
    if (text !== this.#text || this.isUrgent !== this.#wasCounted) {
      this.#text = text
      this.#wasCounted = this.isUrgent
      this.#state = this.root.tracestateOfChild(text, this.isUrgent)
    }
    return this.#state
  }
}

class Snapshot extends Walk {
  isAwaited = false
  missed = 0
  end = (_outcome) => {}
  done = new Promise((resolve) => { this.end = resolve })

  constructor (seconds, reason, omit) {
    super(0, [KEPT, 'snapshot', SNAPSHOT_REASON, reason], omit)
    const at = now()
    this.seconds = seconds
    this.reason = reason
    this.lingersUntil = at + LINGER_MS
    this.since = Number(nanosOf(at - seconds * SECOND_MS))
  }

  wants (one, i) { return one.owners[i] !== GONE && nanosIn(one.chunk.view, one.starts[i] + OFFSET_END) >= this.since }

  /** Counts the wanted spans that are lost with a chunk. */
  miss (one) {
    if (one.sequence < this.sequence) return
    for (let i = one.sequence === this.sequence ? this.index : 0; i < one.count; i++) if (this.wants(one, i)) this.missed++
  }
}

/** The bounds of an encoded span, and of the trace state with its tag in it. Without a trace state: where to insert one. */
function encodedSpanAt (bytes, start, length) {
  const end = fieldEnd(bytes, start, length)
  let at = start + HEAD.length
  while (at !== -1 && at < end && bytes[at] !== TAG_TRACE_STATE) at = fieldEnd(bytes, at, end)
  if (at === -1 || at >= end) return { start, end, stateStart: end, stateEnd: end, state: '' }
  const stateEnd = fieldEnd(bytes, at, end)
  return { start, end, stateStart: at, stateEnd, state: bytes.latin1Slice(bodyStart(bytes, at + 1), stateEnd) }
}

/** A fixed64 as a number: current times are exact to 256 ns. */
function nanosIn (view, at) { return view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true) }

module.exports = { Recorder }
