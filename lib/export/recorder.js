'use strict'

// The recorder: spans of requests that are not sampled, encoded as all others, in a ring of memory that is not sent. The oldest are
// overwritten. What a request that is kept, or a snapshot, asks for is copied into the exporter's buffer, once.
//
//   encoder --> open --> [ chunk | chunk | chunk ] --> overwritten
//                              '--release, snapshot--> exporter
//
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { withThreshold, withoutThreshold, thresholdOf } = require('../context/tracestate')
const { SpanEncoder } = require('../otlp/span-encoder')
const { encodeAttributes } = require('../otlp/proto-writer')
const { OFFSET_END, TAG_ATTRIBUTE } = require('../otlp/templates')
const { readSpan, EncodedSpan } = require('../otlp/thinning')
const { fieldEnd } = require('../otlp/request')
const { Chunk, NO_CHUNK, allocate, chunkBytesFor } = require('./chunk-buffer')
const { KEPT, reasonOf } = require('../span/server-span')
const { monotonicNow, now, setTimeout, clearTimeout, writeNanos } = require('../runtime/timers')
const { counted } = require('../runtime/report')

const SNAPSHOT_REASON = 'light_trace.snapshot.reason'
const LINGER_MS = 1000 // after a snapshot was asked for, so that the requests that were open are in it
const GIVE_UP_MS = 30_000 // a collector that takes nothing
const STEP_MS = 10
const STEP_BYTES = 128 * 1024 // some 250 spans, a quarter of a millisecond
const SECOND_MS = 1000
const SECONDS_MAX = 86_400 // no ring reaches back further

const GONE = 0 // in place of an owner

/** A chunk of the ring, and what its bytes do not say of each of its spans. */
class RingChunk {
  constructor (chunk, sequence) {
    this.chunk = chunk
    this.sequence = sequence // how many came before it
    this.startedAt = now()
    this.owners = [] // the last 32 bits of its request's span id, or GONE once it was sent
    this.starts = [] // where it begins
    this.scopes = [] // encoded
    this.left = 0 // how many are not gone
  }
}

// Where nothing was recorded: nothing fits into it.
const NO_RING = new RingChunk(NO_CHUNK, 0)

class Recorder {
  /** @type {RingChunk[]} */
  #ring = [] // the oldest first; the last is open
  #last = NO_RING
  #chunksMax
  #owner = 0
  #settings
  #exporter
  #exported // the encoder of what is sent
  #suppress
  #stats
  #report
  /** @type {Snapshot | null} */
  #snapshot = null
  #triggeredAt = -Infinity
  #errors = 0 // in the second that began at #secondAt
  #secondAt = -Infinity
  #isClosed = false

  /**
   * @param {{ maxBytes: number, seconds: number, errorsPerSecond: number, blockedLoop: boolean, pauseMs: number }} settings
   * @param {{ exporter: Exporter, sink: SpanEncoder, suppress: Function }} output
   */
  constructor (settings, { exporter, sink, suppress }, stats, report) {
    this.#settings = settings
    this.#exporter = exporter
    this.#exported = sink
    this.#suppress = suppress
    this.#stats = stats
    this.#report = report
    this.chunkBytes = chunkBytesFor(settings.maxBytes)
    this.#chunksMax = Math.floor(settings.maxBytes / this.chunkBytes)
    this.spanBytesMax = Math.min(this.chunkBytes, exporter.spanBytesMax)
    this.encoder = new SpanEncoder(this)
  }

  /** Keeps a span for as long as its bytes last. @param {import('../span/server-span').KeepServerSpan} root the span of its request */
  // HOT, once per span that is not sampled.
  record (span, root) {
    if (this.#isClosed) return this.dropFailed()
    if (span !== root && root.recordedSince === -1) root.recordedSince = this.#last.sequence
    this.#owner = root.s1
    this.encoder.accept(span)
  }

  // For the encoder, as the exporter.

  isLong (byteCount) { return byteCount > this.chunkBytes }

  // HOT, as `record`.
  reserve (byteCount) {
    const { chunk } = this.#last
    if (chunk.length + byteCount <= chunk.capacity) return chunk
    return this.isLong(byteCount) ? null : this.#renew()
  }

  commit (chunk, end) {
    const last = this.#last
    last.owners.push(this.#owner)
    last.starts.push(chunk.length)
    last.scopes.push(chunk.scope)
    last.left++
    chunk.length = end
    chunk.spans++
    this.#stats.recorded++
  }

  dropFailed () { this.#stats.unsampled++ }
  dropTooLarge () { this.#stats.unsampled++ }
  logCut () {}

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
    this.#last = new RingChunk(new Chunk(bytes), this.#last.sequence + 1)
    this.#ring.push(this.#last)
    return this.#last.chunk
  }

  #overwrite () {
    const oldest = /** @type {RingChunk} */ (this.#ring.shift())
    this.#snapshot?.overwritten(oldest)
    this.#stats.recorded -= oldest.left
    this.#stats.unsampled += oldest.left
    return oldest
  }

  /** Sends the children that a request had before its end: it is kept, and they stand for as many as it does. */
  release (root) {
    const mark = encodeAttributes(TAG_ATTRIBUTE, [KEPT, root.kept])
    const threshold = thresholdOf(root.exportedTracestate)
    const stateOf = (text) => threshold === '' ? withoutThreshold(text) : withThreshold(text, threshold)
    for (const one of this.#ring) {
      if (one.sequence < root.recordedSince) continue
      for (let i = one.owners.indexOf(root.s1); i !== -1; i = one.owners.indexOf(root.s1, i + 1)) this.#send(one, i, mark, stateOf)
    }
  }

  /** @returns {number} how many bytes it has */
  #send (one, i, mark, stateOf) {
    const { bytes, length } = one.chunk
    const span = readSpan(bytes, new EncodedSpan(null, one.starts[i], fieldEnd(bytes, one.starts[i], length)), undefined)
    one.owners[i] = GONE
    one.left--
    this.#stats.recorded--
    this.#stats.accepted++
    this.#exported.acceptEncoded(bytes, span, one.scopes[i], stateOf(span.state.text), mark)
    return span.end - span.start
  }

  /**
   * Sends all that has ended in the last `seconds`, and what ends in the second that follows. One at a time: who asks meanwhile
   * gets the one that is under way.
   * @returns {Promise<{ spans: number, missed: number }>} never rejects
   */
  snapshot (seconds, reason) {
    if (this.#isClosed) return Promise.resolve({ spans: 0, missed: 0 })
    if (this.#snapshot === null) {
      this.#snapshot = new Snapshot(typeof seconds === 'number' && seconds >= 0 ? Math.min(seconds, SECONDS_MAX) : this.#settings.seconds, reason)
      this.#suppress(this.#step)
    }
    return this.#snapshot.done
  }

  /** Counts a request that was answered 5xx. */
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
    if (at - this.#triggeredAt < this.#settings.pauseMs) return
    this.#triggeredAt = at
    this.snapshot(undefined, reason)
  }

  // A part at a time, and only while the exporter's buffer has room: it must not push out what is there.
  #step = () => {
    const snapshot = /** @type {Snapshot} */ (this.#snapshot)
    let bytes = 0
    let isAtEnd = true
    for (const one of this.#ring) {
      if (one.sequence < snapshot.sequence) continue
      if (one.sequence > snapshot.sequence) snapshot.moveTo(one)
      for (; isAtEnd && snapshot.index < one.owners.length; snapshot.index++) {
        if (!snapshot.wants(one, snapshot.index)) continue
        isAtEnd = bytes < STEP_BYTES && !this.#exporter.isFilling
        if (!isAtEnd) break
        bytes += this.#send(one, snapshot.index, snapshot.mark, withoutThreshold)
        snapshot.spans++
      }
      if (!isAtEnd) break
    }
    const at = now()
    if ((isAtEnd && at >= snapshot.lingersUntil) || at >= snapshot.givesUpAt) this.#endSnapshot()
    else snapshot.timer = setTimeout(this.#step, STEP_MS)
  }

  #endSnapshot () {
    const snapshot = /** @type {Snapshot} */ (this.#snapshot)
    clearTimeout(snapshot.timer)
    for (const one of this.#ring) snapshot.overwritten(one) // what it has not come to
    this.#snapshot = null
    const { spans, missed, reason } = snapshot
    this.#report.info(`a snapshot (${reason}) of ${snapshot.seconds} s: ${counted(spans, 'span')} sent${missed === 0 ? '' : `, ${missed} missed: the collector takes too few`}`)
    snapshot.end({ spans, missed })
  }

  /** Forgets all: what was not sampled, and not asked for, is not delivered at the end either. */
  close () {
    this.#isClosed = true
    if (this.#snapshot !== null) this.#endSnapshot()
    while (this.#ring.length > 0) this.#overwrite()
  }
}

class Snapshot {
  constructor (seconds, reason) {
    const at = now()
    this.seconds = seconds
    this.reason = reasonOf(reason)
    this.mark = encodeAttributes(TAG_ATTRIBUTE, [KEPT, 'snapshot', SNAPSHOT_REASON, this.reason])
    this.lingersUntil = at + LINGER_MS
    this.givesUpAt = at + GIVE_UP_MS
    this.sequence = 0 // of the chunk that it is in
    this.index = 0 // of the next span there
    this.spans = 0
    this.missed = 0
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined
    this.since = Buffer.alloc(8) // as spans have it
    writeNanos(new DataView(this.since.buffer, this.since.byteOffset), 0, at - seconds * SECOND_MS)
    this.end = (_outcome) => {}
    this.done = new Promise((resolve) => { this.end = resolve })
  }

  moveTo ({ sequence }) {
    this.sequence = sequence
    this.index = 0
  }

  /** Whether a span is one of its own that is not gone. */
  wants (one, i) {
    if (one.owners[i] === GONE) return false
    return one.chunk.bytes.readBigUInt64LE(one.starts[i] + OFFSET_END) >= this.since.readBigUInt64LE()
  }

  /** Counts what is lost to it with a chunk. */
  overwritten (one) {
    if (one.sequence < this.sequence) return
    for (let i = one.sequence === this.sequence ? this.index : 0; i < one.owners.length; i++) if (this.wants(one, i)) this.missed++
  }
}

module.exports = { Recorder }
