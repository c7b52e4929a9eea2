'use strict'

// Where encoded spans wait until a collector has them. The span encoder writes into the open chunk; a chunk
// that is full is sealed and joins the queue; the delivery takes from the front and puts back what failed.
//
//    encoder ──► open ──seal──► [ sealed │ sealed │ compressed (gzip) ] ──take──► in flight ──release──► spare
//                                  ▲ evicted from here, oldest first    ◄──putBack──┘
//
// `bytes` counts what is allocated in all of these places, spare included, and never passes `bytesMax`.

const { halvesOf } = require('../otlp/split')
const { Chunk, NO_CHUNK } = require('./chunk')

// The fixed cost of memory and of a seal is spread over some 500 spans; a loss of one chunk is still small.
const CHUNK_BYTES = 256 * 1024
const CHUNK_BYTES_MIN = 16 * 1024
// A small buffer gets smaller chunks: what is allocated and not yet written is lost for keeping, and what goes when
// it overflows goes by the chunk.
const CHUNKS_PER_BUFFER = 32
// Recycled memory is warm in the cache and gives the garbage collector nothing to do. 2 MiB cover what is
// in flight and what fills meanwhile at 100,000 spans a second; but never more than an eighth of the buffer.
const SPARE_CHUNKS_MAX = 8
const SPARE_PART = 1 / 8
// Collectors take 20 MiB in one request, proxies before them less. A longer span is nothing but a mistake.
const SPAN_BYTES_MAX = 4 * 1024 * 1024
const SPANS_MAX = 2 ** 30

class ChunkBuffer {
  #queue = []
  #spare = []
  #spareMax
  #onEvict

  constructor (bytesMax, spansMax, onEvict) {
    this.bytesMax = bytesMax
    this.spansMax = spansMax ?? SPANS_MAX
    this.chunkBytes = Math.min(bytesMax, Math.max(CHUNK_BYTES_MIN, Math.min(CHUNK_BYTES, Math.floor(bytesMax / CHUNKS_PER_BUFFER))))
    this.#spareMax = Math.min(SPARE_CHUNKS_MAX, Math.ceil(bytesMax * SPARE_PART / this.chunkBytes))
    // The other half is for the spans that come next: they would evict one that fills the buffer.
    this.spanBytesMax = Math.min(Math.max(this.chunkBytes, Math.floor(bytesMax / 2)), SPAN_BYTES_MAX)
    this.open = NO_CHUNK
    this.bytes = 0
    this.sealedSpans = 0
    this.sealedBytes = 0
    // Of spans that were ever sealed: goes on growing where the buffer is full.
    this.bytesWritten = 0
    this.#onEvict = onEvict
  }

  // A fresh open chunk with at least `byteCount` free bytes, or NO_CHUNK where the process has no more memory, or
  // null where all that there may be is in flight.
  renew (byteCount) {
    this.seal()
    const chunk = this.#allocate(Math.max(byteCount, this.chunkBytes))
    if (chunk !== null) this.open = chunk
    return chunk
  }

  // Moves the open chunk to the end of the queue.
  seal () {
    const chunk = this.open
    this.open = NO_CHUNK
    if (chunk === NO_CHUNK) return
    if (chunk.spans === 0) return this.#recycle(chunk)
    this.bytesWritten += chunk.length
    this.#enqueue(this.#fitted(chunk))
  }

  get sealedChunks () {
    return this.#queue.length
  }

  // The chunks of the next request, oldest first: at most `bytesMax` and `spansMax`, but always at least one,
  // and a compressed one alone, because it is a whole body. Empty where the oldest is being compressed right now.
  take (bytesMax, spansMax) {
    const batch = []
    let bytes = 0
    let spans = 0
    while (this.#queue.length > 0) {
      const chunk = this.#queue[0]
      bytes += chunk.length
      spans += chunk.spans
      if (chunk.pinned || (batch.length > 0 && (chunk.body !== null || bytes > bytesMax || spans > spansMax))) break
      batch.push(this.#dequeue(0))
      if (chunk.body !== null) break
    }
    return batch
  }

  // What could not be delivered is the oldest again.
  putBack (batch) {
    for (let i = batch.length - 1; i >= 0; i--) {
      this.#queue.unshift(batch[i])
      this.sealedSpans += batch[i].spans
      this.sealedBytes += batch[i].length
    }
  }

  // Gives up the memory of chunks that are done with. `reusable` is false while a socket may still read it.
  release (batch, reusable) {
    for (const chunk of batch) {
      if (reusable) this.#recycle(chunk)
      else this.#forget(chunk)
    }
  }

  // Takes everything out of the queue; the number of spans in it.
  clear () {
    const spans = this.sealedSpans
    while (this.#queue.length > 0) {
      const chunk = this.#dequeue(this.#queue.length - 1)
      chunk.pinned = false
      this.#forget(chunk)
    }
    return spans
  }

  // The oldest chunk that is worth compressing, or null. The front is left alone: it may be sent any moment.
  oldestUncompressed () {
    for (let i = 1; i < this.#queue.length; i++) {
      const chunk = this.#queue[i]
      if (chunk.body === null && !chunk.isUncompressed && !chunk.pinned) return chunk
    }
    return null
  }

  // Replaces a chunk's memory by its gzipped request body.
  storeCompressed (chunk, body) {
    this.#forget(chunk)
    chunk.body = body
    chunk.bytes = chunk.view = null
    chunk.capacity = body.length
    this.bytes += body.length
  }

  unpark (chunk, bytes) {
    this.bytes += bytes.length - chunk.capacity
    chunk.body = null
    chunk.isUncompressed = true
    chunk.bytes = bytes
    chunk.capacity = bytes.length
  }

  // Two chunks for one that was taken, or null where it holds but one span.
  halve (chunk) {
    const halves = halvesOf(chunk.bytes, chunk.length, chunk.spans)
    if (halves === null) return null
    this.#forget(chunk)
    return halves.map(({ bytes, spans }) => {
      const half = new Chunk(bytes)
      half.length = bytes.length
      half.spans = spans
      half.attempts = chunk.attempts
      this.bytes += bytes.length
      return half
    })
  }

  // Memory that is kept for reuse but was not wanted for a while.
  trim () {
    while (this.#spare.length > 1) this.bytes -= this.#spare.pop().capacity
  }

  #allocate (byteCount) {
    const isStandard = byteCount === this.chunkBytes
    for (;;) {
      if (isStandard && this.#spare.length > 0) return this.#spare.pop()
      if (this.bytes + byteCount <= this.bytesMax) break
      if (this.#spare.length > 0) this.bytes -= this.#spare.pop().capacity
      else if (!this.#evict()) return null
    }
    try {
      const chunk = new Chunk(Buffer.allocUnsafeSlow(byteCount))
      this.bytes += byteCount
      return chunk
    } catch { // RangeError: the span is dropped, the app goes on
      return NO_CHUNK
    }
  }

  #evict () {
    const index = this.#queue.findIndex((chunk) => !chunk.pinned)
    if (index === -1) return false
    const chunk = this.#dequeue(index)
    this.#onEvict(chunk.spans)
    this.#recycle(chunk)
    return true
  }

  #enqueue (chunk) {
    this.#queue.push(chunk)
    this.sealedSpans += chunk.spans
    this.sealedBytes += chunk.length
  }

  #dequeue (index) {
    const [chunk] = this.#queue.splice(index, 1)
    this.sealedSpans -= chunk.spans
    this.sealedBytes -= chunk.length
    return chunk
  }

  #recycle (chunk) {
    if (chunk.capacity !== this.chunkBytes || chunk.body !== null || this.#spare.length >= this.#spareMax) return this.#forget(chunk)
    this.#spare.push(new Chunk(chunk.bytes))
  }

  #forget (chunk) {
    this.bytes -= chunk.capacity
  }

  // A chunk that waits holds no more memory than its spans need, else requests of few spans each (a trickle, or
  // OTEL_BSP_MAX_EXPORT_BATCH_SIZE) would fill the buffer with air.
  #fitted (chunk) {
    if (chunk.length * 2 > chunk.capacity) return chunk
    let fitted
    try {
      fitted = new Chunk(Buffer.allocUnsafeSlow(chunk.length))
    } catch {
      return chunk
    }
    chunk.bytes.copy(fitted.bytes, 0, 0, chunk.length)
    fitted.length = chunk.length
    fitted.spans = chunk.spans
    if (this.bytes + fitted.capacity <= this.bytesMax) this.#recycle(chunk)
    else this.#forget(chunk)
    this.bytes += fitted.capacity
    return fitted
  }
}

module.exports = { ChunkBuffer }
