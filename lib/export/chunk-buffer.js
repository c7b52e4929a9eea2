'use strict'

// Holds encoded spans until a collector has them. The span encoder writes into the open chunk. A full chunk is sealed and joins the
// queue. The sender takes chunks from the front and puts back those that failed.
//
//    encoder --> open --seal--> [ sealed | sealed | compressed (gzip) ] --take--> in flight --release--> spare
//                                  ^ shrunk or evicted from here        <--putBack--'
//
// `bytes` counts the memory of all these chunks. The sum over the buffers of an application never exceeds their budget.

const { halvesOf } = require('../otlp/request.js')
const { attempt } = require('../runtime/report.js')

const CHUNK_BYTES = 256 * 1024 // about 500 spans: losing one chunk is still a small loss
const CHUNK_BYTES_MIN = 16 * 1024
// A small buffer gets smaller chunks, because an overflow drops a whole chunk, and the free part of the open one is wasted.
const CHUNKS_PER_BUFFER = 32
// 2 MiB cover the chunks in flight and those that fill meanwhile at 100,000 spans a second. Spares take at most an eighth of the buffer.
const SPARE_CHUNKS_MAX = 8
const SPARE_PART = 1 / 8
// Collectors accept 20 MiB in one request, and proxies in front of them less. A longer span is always a mistake.
const SPAN_BYTES_MAX = 4 * 1024 * 1024
const SHRUNK_BYTES = 1024 // kept free if chunks can be thinned, because a span that is kept may become longer

/**
 * A block of memory that holds encoded spans.
 *
 *   bytes  | scope_spans | scope_spans ...     | free            |
 *          0             ^ scopeSpansStart        ^ length          ^ capacity
 */
class Chunk {
  constructor (bytes, view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), length = 0, spans = 0, attempts = 0) {
    this.bytes = bytes
    this.view = view // null if the chunk is not written any more
    this.capacity = bytes.length
    this.length = length
    this.spans = spans
    // For the encoder: the scope of the scope_spans that it is writing, and where they start.
    this.scope = null
    this.scopeSpansStart = 0
    // For the sender:
    this.attempts = attempts // how often it was sent
    this.body = null // the whole request body, once gzipped
    this.isUncompressed = false // it must not be gzipped
    this.shrunk = null // state of the shrinker, which makes it smaller in a full buffer
  }

  compress (body) {
    this.body = body
    this.bytes = this.view = null
    this.capacity = body.length
  }
}

// Used while no chunk is open. Nothing fits into it, so the hot path needs no null check.
const NO_CHUNK = new Chunk(Buffer.allocUnsafeSlow(0), null)
NO_CHUNK.capacity = -1

/**
 * The memory limit for all buffers of an application. When a buffer needs memory beyond it, the buffers before it are evicted first, then
 * the buffer itself.
 */
class Budget {
  /** @type {ChunkBuffer[]} */
  #buffers = []

  constructor (bytesMax) {
    this.bytesMax = bytesMax
  }

  /** Adds a buffer before all others: its content is worth less than theirs. */
  add (buffer) { this.#buffers.unshift(buffer) }

  get bytes () { return this.#buffers.reduce((sum, { bytes }) => sum + bytes, 0) }

  hasRoomFor (byteCount) { return this.bytes + byteCount <= this.bytesMax }

  /** Frees some memory for `buffer`. Returns false if there is nothing to free. */
  evictFor (buffer) {
    return this.#buffers.slice(0, this.#buffers.indexOf(buffer) + 1).some((one) => one.evict())
  }
}

class ChunkBuffer {
  #queue = []
  #spare = []
  #spareMax
  #idleSpares = 0 // how many were not used since the last trim
  #onGone
  #budget
  #makeShrinker
  #shrinker = undefined

  // onGone(spans, 0) reports spans that were dropped with their chunk. A full buffer drops its oldest chunk, unless the shrinker that
  // makeShrinker(buffer) returns can make a chunk smaller. Neither function may throw.
  constructor (budget, spansMax = Infinity, onGone, makeShrinker = null) {
    const { bytesMax } = budget
    this.#budget = budget
    budget.add(this)
    this.bytesMax = bytesMax
    this.spansMax = spansMax
    this.chunkBytes = chunkBytesFor(bytesMax)
    this.#spareMax = Math.min(SPARE_CHUNKS_MAX, Math.ceil(bytesMax * SPARE_PART / this.chunkBytes))
    // Half of the buffer is left for the spans that come next. They would evict a span that fills the whole buffer.
    this.spanBytesMax = Math.min(Math.max(this.chunkBytes, Math.floor(bytesMax / 2)), SPAN_BYTES_MAX)
    this.open = NO_CHUNK
    this.bytes = 0
    this.sealedSpans = 0
    this.sealedBytes = 0
    this.bytesWritten = 0 // by all spans that were ever sealed; keeps growing when the buffer is full
    this.#onGone = onGone
    this.#makeShrinker = makeShrinker
  }

  // Returns an open chunk with `byteCount` free bytes, NO_CHUNK if the process is out of memory, or null if the whole buffer is in flight.
  renew (byteCount) {
    this.seal()
    const chunk = this.#allocate(byteCount)
    if (chunk !== null) this.open = chunk
    return chunk
  }

  seal () {
    const { open } = this
    this.open = NO_CHUNK
    if (open === NO_CHUNK) return
    if (open.spans === 0) return this.#recycle(open)
    const chunk = this.#fitted(open)
    this.bytesWritten += chunk.length
    this.#queue.push(chunk)
    this.#countSealed(chunk, 1)
  }

  get sealedChunks () { return this.#queue.length }
  /** The sealed chunks, oldest first. */
  get waiting () { return this.#queue }

  // Takes the oldest chunks, at most `bytesMax` and `spansMax`, but at least one chunk. A compressed chunk is taken alone, because it is a
  // whole body.
  take (bytesMax) {
    const batch = []
    let bytes = 0
    let spans = 0
    while (this.#queue.length > 0) {
      const chunk = this.#queue[0]
      bytes += chunk.length
      spans += chunk.spans
      if (batch.length > 0 && (chunk.body !== null || bytes > bytesMax || spans > this.spansMax)) break
      batch.push(this.#dequeue())
      if (chunk.body !== null) break
    }
    return batch
  }

  putBack (batch) {
    this.#queue.unshift(...batch)
    for (const chunk of batch) this.#countSealed(chunk, 1)
  }

  // Releases the memory of finished chunks. `reusable` is false while a socket may still read it.
  release (batch, reusable) {
    for (const chunk of batch) {
      if (reusable) this.#recycle(chunk)
      else this.#forget(chunk)
    }
  }

  // Empties the queue; returns the number of spans that were in it.
  clear () {
    const spans = this.sealedSpans
    for (const chunk of this.#queue.splice(0)) {
      this.#countSealed(chunk, -1)
      this.#forget(chunk)
    }
    return spans
  }

  // Returns the oldest chunk that is worth compressing, or null. Skips the front chunk, which may be sent at any moment.
  oldestUncompressed () {
    return this.#queue.find((chunk, i) => i > 0 && chunk.body === null && !chunk.isUncompressed) ?? null
  }

  isWaiting (chunk) { return this.#queue.includes(chunk) }
  hasRoomFor (byteCount) { return this.#budget.hasRoomFor(byteCount) }

  storeCompressed (chunk, body) {
    this.bytes += body.length - chunk.capacity
    chunk.compress(body)
  }

  // Undoes `storeCompressed` permanently.
  storePlain (chunk, bytes) {
    this.bytes += bytes.length - chunk.capacity
    chunk.body = null
    chunk.isUncompressed = true
    chunk.bytes = bytes
    chunk.capacity = bytes.length
  }

  // Splits a taken chunk in two. Returns null if it holds only one span.
  halve (chunk) {
    const halves = halvesOf(chunk.bytes, chunk.length, chunk.spans)
    if (halves === null) return null
    this.#forget(chunk)
    while (!this.#budget.hasRoomFor(halves[0].bytes.length + halves[1].bytes.length) && this.#budget.evictFor(this)); // each half has its own header
    return halves.map(({ bytes, spans }) => this.#own(new Chunk(bytes, null, bytes.length, spans, chunk.attempts)))
  }

  // Frees spare memory that was not used since the last trim. V8 frees old memory only at a major garbage collection. A busy service that
  // released each second the memory that it needs in the next would therefore hold tens of megabytes of it.
  trim () {
    for (; this.#idleSpares > 1; this.#idleSpares--) this.#forget(this.#spare.pop())
    this.#idleSpares = this.#spare.length
  }

  // If chunks can be thinned, a new chunk may be smaller than the standard size, because freeing a whole chunk means thinning several.
  #allocate (byteCountMin) {
    let byteCount = Math.max(byteCountMin, this.chunkBytes)
    const isStandard = byteCount === this.chunkBytes
    this.#shrinker?.begin()
    for (;;) {
      if (isStandard && this.#spare.length > 0) return this.#takeSpare()
      const room = this.bytesMax - this.#budget.bytes - (this.#makeShrinker === null ? 0 : SHRUNK_BYTES)
      if (isStandard && this.#makeShrinker !== null && room >= Math.max(byteCountMin, this.chunkBytes / 2)) byteCount = Math.min(byteCount, room)
      if (byteCount <= room) break
      if (this.#spare.length > 0) this.#forget(this.#takeSpare())
      else if (!this.#budget.evictFor(this)) return null
    }
    const bytes = allocate(byteCount)
    return bytes === null ? NO_CHUNK : this.#own(new Chunk(bytes))
  }

  /** Frees a spare chunk. Without one, thins a chunk or drops the oldest. Returns false if there was no chunk. */
  evict () {
    if (this.#spare.length > 0) {
      this.#forget(this.#takeSpare())
      return true
    }
    if (this.#queue.length === 0) return false
    if (this.shrinker?.makeRoom() !== true) this.giveUp(this.#queue[0])
    return true
  }

  giveUp (chunk) {
    this.#dequeue(this.#queue.indexOf(chunk))
    this.#onGone(chunk.spans, 0)
    this.#recycle(chunk)
  }

  /**
   * Makes waiting chunks smaller; null if nothing does. It is loaded at the first use, by ChunkCompressor when half of the memory is
   * taken, so that no request waits for the disk.
   */
  get shrinker () {
    if (this.#shrinker === undefined) this.#shrinker = this.#makeShrinker?.(this) ?? null
    return this.#shrinker
  }

  /** Replaces adjacent chunks by the chunk that was made from them. If it is too long, drops them and returns false. */
  replace (chunks, made) {
    if (made.capacity > this.roomInPlaceOf(chunks)) {
      for (const chunk of chunks) this.giveUp(chunk)
      return false
    }
    made.attempts = Math.max(...chunks.map(({ attempts }) => attempts))
    this.#queue.splice(this.#queue.indexOf(chunks[0]), chunks.length, ...made.spans === 0 ? [] : [made])
    for (const chunk of chunks) {
      this.#countSealed(chunk, -1)
      this.#forget(chunk)
    }
    if (made.spans > 0) this.#own(made)
    this.#countSealed(made, 1)
    return true
  }

  roomInPlaceOf (chunks) { return chunks.reduce((total, { capacity }) => total + capacity, 0) + this.bytesMax - this.#budget.bytes }

  #dequeue (index = 0) {
    const [chunk] = this.#queue.splice(index, 1)
    this.#countSealed(chunk, -1)
    return chunk
  }

  #countSealed (chunk, sign) {
    this.sealedSpans += sign * chunk.spans
    this.sealedBytes += sign * chunk.length
  }

  #recycle (chunk) {
    const isSpare = chunk.view !== null && chunk.capacity === this.chunkBytes && this.#spare.length < this.#spareMax
    if (isSpare) this.#spare.push(new Chunk(chunk.bytes, chunk.view))
    else this.#forget(chunk)
  }

  #takeSpare () {
    const chunk = this.#spare.pop()
    this.#idleSpares = Math.min(this.#idleSpares, this.#spare.length)
    return chunk
  }

  #own (chunk) {
    this.bytes += chunk.capacity
    return chunk
  }

  #forget (chunk) { this.bytes -= chunk.capacity }

  // Copies a chunk that is at most half full into memory of its size. Otherwise requests of few spans each (little traffic, or
  // OTEL_BSP_MAX_EXPORT_BATCH_SIZE) would fill the buffer with unused memory.
  #fitted (chunk) {
    if (chunk.length * 2 > chunk.capacity) return chunk
    const bytes = allocate(chunk.length)
    if (bytes === null) return chunk
    chunk.bytes.copy(bytes, 0, 0, chunk.length)
    const fitted = new Chunk(bytes, null, chunk.length, chunk.spans)
    if (this.#budget.hasRoomFor(fitted.capacity)) this.#recycle(chunk)
    else this.#forget(chunk)
    return this.#own(fitted)
  }
}

/** Returns the chunk size for a buffer of `bytesMax` bytes. */
function chunkBytesFor (bytesMax) {
  return Math.min(bytesMax, Math.max(CHUNK_BYTES_MIN, Math.min(CHUNK_BYTES, Math.floor(bytesMax / CHUNKS_PER_BUFFER))))
}

// Returns null if the process is out of memory: the span is dropped and the app continues.
function allocate (byteCount) { return attempt(() => Buffer.allocUnsafeSlow(byteCount)) ?? null }

module.exports = { Chunk, NO_CHUNK, Budget, ChunkBuffer, allocate, chunkBytesFor }
