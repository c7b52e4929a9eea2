'use strict'

// Where encoded spans wait until a collector has them. The span encoder writes into the open chunk; a chunk
// that is full is sealed and joins the queue; the sender takes from the front and puts back what failed.
//
//    encoder --> open --seal--> [ sealed | sealed | compressed (gzip) ] --take--> in flight --release--> spare
//                                  ^ evicted from here, oldest first    <--putBack--'
//
// `bytes` counts what is allocated in all of these places. The sum over the buffers of an application never passes their budget.

const { halvesOf } = require('../otlp/request')
const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers')

const CHUNK_BYTES = 256 * 1024 // some 500 spans: a loss of one chunk is still small
const CHUNK_BYTES_MIN = 16 * 1024
// A small buffer gets smaller chunks: an overflow drops a whole chunk, and the free part of the open one keeps no spans.
const CHUNKS_PER_BUFFER = 32
// 2 MiB cover what is in flight and what fills meanwhile at 100,000 spans a second; but never more than an eighth of the buffer.
const SPARE_CHUNKS_MAX = 8
const SPARE_PART = 1 / 8
// Collectors take 20 MiB in one request, proxies before them less. A longer span is nothing but a mistake.
const SPAN_BYTES_MAX = 4 * 1024 * 1024

/**
 * A piece of memory with encoded spans in it.
 *
 *   bytes  | scope_spans | scope_spans ...     | free            |
 *          0             ^ scopeSpansStart        ^ length          ^ capacity
 */
class Chunk {
  constructor (bytes, view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), length = 0, spans = 0, attempts = 0) {
    this.bytes = bytes
    this.view = view // null where nothing more is written
    this.capacity = bytes.length
    this.length = length
    this.spans = spans
    // Of the encoder: the scope of the scope_spans that it is writing, and where they start.
    this.scope = null
    this.scopeSpansStart = 0
    // Of the sender:
    this.attempts = attempts // how often it was sent
    this.body = null // the whole request body once it is gzipped
    this.isUncompressed = false // it must not be gzipped
  }
}

// There is no open chunk: nothing fits into it, so the hot path needs no check for null.
const NO_CHUNK = new Chunk(Buffer.allocUnsafeSlow(0), null)
NO_CHUNK.capacity = -1

/** What all buffers of an application may take together. Where it is short, the ones before a buffer give way, then the buffer itself. */
class Budget {
  /** @type {ChunkBuffer[]} */
  #buffers = []

  constructor (bytesMax) {
    this.bytesMax = bytesMax
  }

  /** Adds a buffer, before all others: what it holds is worth less. */
  add (buffer) { this.#buffers.unshift(buffer) }

  get bytes () { return this.#buffers.reduce((sum, { bytes }) => sum + bytes, 0) }

  hasRoomFor (byteCount) { return this.bytes + byteCount <= this.bytesMax }

  /** Frees some memory for `buffer`; false if there is none. */
  evictFor (buffer) {
    return this.#buffers.slice(0, this.#buffers.indexOf(buffer) + 1).some((one) => one.evict())
  }
}

class ChunkBuffer {
  #queue = []
  #spare = []
  #spareMax
  #onEvict
  #budget

  constructor (budget, spansMax = Infinity, onEvict) {
    const { bytesMax } = budget
    this.#budget = budget
    budget.add(this)
    this.bytesMax = bytesMax
    this.spansMax = spansMax
    const chunkBytes = Math.max(CHUNK_BYTES_MIN, Math.min(CHUNK_BYTES, Math.floor(bytesMax / CHUNKS_PER_BUFFER)))
    this.chunkBytes = Math.min(bytesMax, chunkBytes)
    this.#spareMax = Math.min(SPARE_CHUNKS_MAX, Math.ceil(bytesMax * SPARE_PART / this.chunkBytes))
    // The other half is for the spans that come next: they would evict one that fills the buffer.
    this.spanBytesMax = Math.min(Math.max(this.chunkBytes, Math.floor(bytesMax / 2)), SPAN_BYTES_MAX)
    this.open = NO_CHUNK
    this.bytes = 0
    this.sealedSpans = 0
    this.sealedBytes = 0
    this.bytesWritten = 0 // of all spans that were ever sealed: goes on growing when the buffer is full
    this.#onEvict = onEvict
  }

  // Returns an open chunk with `byteCount` free bytes, NO_CHUNK if there is no more memory, or null if the whole buffer is in flight.
  renew (byteCount) {
    this.seal()
    const chunk = this.#allocate(Math.max(byteCount, this.chunkBytes))
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

  // Takes the oldest chunks, at most `bytesMax` and `spansMax`, but at least one. A compressed one goes alone: it is a whole body.
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

  // Gives up the memory of chunks that are done with. `reusable` is false while a socket may still read it.
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

  // Finds the oldest chunk that is worth compressing, or null. The front is left alone: it may be sent any moment.
  oldestUncompressed () {
    return this.#queue.find((chunk, i) => i > 0 && chunk.body === null && !chunk.isUncompressed) ?? null
  }

  isWaiting (chunk) { return this.#queue.includes(chunk) }

  storeCompressed (chunk, body) {
    this.bytes += body.length - chunk.capacity
    chunk.body = body
    chunk.bytes = chunk.view = null
    chunk.capacity = body.length
  }

  // Undoes `storeCompressed`, for good.
  storePlain (chunk, bytes) {
    this.bytes += bytes.length - chunk.capacity
    chunk.body = null
    chunk.isUncompressed = true
    chunk.bytes = bytes
    chunk.capacity = bytes.length
  }

  // Makes two chunks of one that was taken; null if it holds only one span.
  halve (chunk) {
    const halves = halvesOf(chunk.bytes, chunk.length, chunk.spans)
    if (halves === null) return null
    this.#forget(chunk)
    return halves.map(({ bytes, spans }) => {
      this.bytes += bytes.length
      return new Chunk(bytes, null, bytes.length, spans, chunk.attempts)
    })
  }

  // Frees memory that is kept for reuse and was not wanted for a while.
  trim () {
    while (this.#spare.length > 1) this.#forget(this.#spare.pop())
  }

  #allocate (byteCount) {
    const isStandard = byteCount === this.chunkBytes
    for (;;) {
      if (isStandard && this.#spare.length > 0) return this.#spare.pop()
      if (this.#budget.hasRoomFor(byteCount)) break
      if (this.#spare.length > 0) this.#forget(this.#spare.pop())
      else if (!this.#budget.evictFor(this)) return null
    }
    const bytes = allocate(byteCount)
    if (bytes === null) return NO_CHUNK
    this.bytes += byteCount
    return new Chunk(bytes)
  }

  /** Gives up what is kept for reuse, then the oldest chunk. Returns whether there was any. */
  evict () {
    if (this.#spare.length > 0) {
      this.#forget(this.#spare.pop())
      return true
    }
    if (this.#queue.length === 0) return false
    const chunk = this.#dequeue()
    this.#onEvict(chunk.spans)
    this.#recycle(chunk)
    return true
  }

  #dequeue () {
    const chunk = this.#queue.shift()
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

  #forget (chunk) { this.bytes -= chunk.capacity }

  // Copies a chunk that is less than half full into memory of its size: else requests of few spans each (a trickle, or
  // OTEL_BSP_MAX_EXPORT_BATCH_SIZE) would fill the buffer with air.
  #fitted (chunk) {
    if (chunk.length * 2 > chunk.capacity) return chunk
    const bytes = allocate(chunk.length)
    if (bytes === null) return chunk
    chunk.bytes.copy(bytes, 0, 0, chunk.length)
    const fitted = new Chunk(bytes, null, chunk.length, chunk.spans)
    if (this.#budget.hasRoomFor(fitted.capacity)) this.#recycle(chunk)
    else this.#forget(chunk)
    this.bytes += fitted.capacity
    return fitted
  }
}

// Null if there is no more memory: the span is dropped, the app goes on.
function allocate (byteCount) {
  try {
    return Buffer.allocUnsafeSlow(byteCount)
  } catch {
    return null
  }
}

// Gzip on libuv's threads. node:zlib is loaded when it is needed: it takes 0.6 ms, and compression is off by default.

// Two thirds of the time of the default level for a few per cent more bytes: spans repeat themselves.
const LEVEL = 1
// Most outages end before half of the buffer is full; until then compressing would be for nothing.
const COMPRESS_ABOVE = 1 / 2
// Compressing takes at most a tenth of one core, however fast the chunks come.
const PAUSE_PER_WORK = 9
// A chunk that saves less than this stays as it is.
const BYTES_SAVED_MIN = 1 / 4

// Makes one gzip member of several buffers. done(error, bytes) is called once, never in this turn.
function gzip (parts, done) {
  inBackground('gzip', Buffer.concat(parts), done)
}

function inBackground (method, bytes, done) {
  try {
    require('node:zlib')[method](bytes, { level: LEVEL }, done)
  } catch (error) { // zlib allocates its window here, and may find no memory
    process.nextTick(done, error)
  }
}

/**
 * Gzips the waiting chunks during a long outage, some ten to one, so that the same buffer lasts ten times as long. A
 * compressed chunk is a whole request body, resource included, and is sent as it is; every OTLP server must take gzip.
 */
class ChunkCompressor {
  #buffer
  #prefix
  #timer = null
  #isBusy = false
  #isOff = false

  constructor (buffer, prefix) {
    this.#buffer = buffer
    this.#prefix = prefix
  }

  consider () {
    if (this.#isBusy || this.#isOff) return
    if (this.#buffer.bytes <= this.#buffer.bytesMax * COMPRESS_ABOVE) return
    const chunk = this.#buffer.oldestUncompressed()
    if (chunk === null) return
    this.#isBusy = true
    const startedAt = monotonicNow()
    const parts = [this.#prefix.head(chunk.length), chunk.bytes.subarray(0, chunk.length)]
    gzip(parts, (error, body) => this.#onCompressed(chunk, error, body, monotonicNow() - startedAt))
  }

  // Makes a compressed chunk plain again, for a collector that does not take it compressed. done(hasWorked)
  decompress (chunk, done) {
    inBackground('gunzip', chunk.body, (error, bytes) => {
      if (error === null) this.#buffer.storePlain(chunk, bytes.subarray(bytes.length - chunk.length))
      done(error === null)
    })
  }

  stop () {
    this.#isOff = true
    clearTimeout(this.#timer)
  }

  #onCompressed (chunk, error, body, workMs) {
    const isSmaller = error === null && body.length <= chunk.capacity * (1 - BYTES_SAVED_MIN)
    if (!isSmaller) chunk.isUncompressed = true
    else if (this.#buffer.isWaiting(chunk)) this.#buffer.storeCompressed(chunk, body) // else it was sent or dropped meanwhile
    if (!this.#isOff) this.#timer = setTimeout(this.#onPaused, Math.max(1, workMs * PAUSE_PER_WORK)).unref()
  }

  #onPaused = () => {
    this.#isBusy = false
    this.consider()
  }
}

module.exports = { Chunk, NO_CHUNK, Budget, ChunkBuffer, gzip, ChunkCompressor }
