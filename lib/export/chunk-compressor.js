'use strict'

// During a long outage the waiting chunks are gzipped, some ten to one, on another thread: the same buffer
// then lasts ten times as long. A compressed chunk is a whole request body, resource included, so that it is sent
// as it is; every OTLP server must take gzip.

const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers')
const { gzip, gunzip } = require('./gzip')

// Most outages end before; until then compressing would be for nothing.
const PARK_ABOVE = 1 / 2
const GZIP_LEVEL = 1
// Compressing takes at most a tenth of one core, however fast the chunks come: what it frees is worth less
// than the app's own work.
const PAUSE_PER_WORK = 9
// Of less than this, the next fuller chunk is the better one to take.
const BYTES_SAVED_MIN = 1 / 4

class ChunkCompressor {
  #buffer
  #prefix
  #onDone
  #timer = null
  #isBusy = false
  #isOff = false

  constructor (buffer, prefix, onDone) {
    this.#buffer = buffer
    this.#prefix = prefix
    this.#onDone = onDone
  }

  // Compresses one more chunk if it is time to.
  consider () {
    if (this.#isBusy || this.#isOff || this.#timer !== null) return
    if (this.#buffer.bytes <= this.#buffer.bytesMax * PARK_ABOVE) return
    const chunk = this.#buffer.oldestUncompressed()
    if (chunk === null) return
    this.#isBusy = chunk.pinned = true
    const startedAt = monotonicNow()
    const parts = [this.#prefix.head(chunk.length), chunk.bytes.subarray(0, chunk.length)]
    gzip(parts, GZIP_LEVEL, (error, body) => this.#onCompressed(chunk, error, body, monotonicNow() - startedAt))
  }

  // Back to plain bytes, for a collector that does not take it compressed. done(hasWorked)
  decompress (chunk, done) {
    const headBytes = this.#prefix.head(chunk.length).length
    gunzip(chunk.body, headBytes + chunk.length, (error, bytes) => {
      if (error === null) this.#buffer.unpark(chunk, bytes.subarray(headBytes))
      done(error === null)
    })
  }

  stop () {
    this.#isOff = true
    clearTimeout(this.#timer)
  }

  #onCompressed (chunk, error, body, workMs) {
    this.#isBusy = false
    // Not pinned any more: dropped meanwhile, by a close whose deadline came.
    if (!chunk.pinned) return
    chunk.pinned = false
    if (error === null && body.length <= chunk.capacity * (1 - BYTES_SAVED_MIN)) this.#buffer.storeCompressed(chunk, body)
    else chunk.isUncompressed = true
    if (!this.#isOff) this.#pause(workMs)
    this.#onDone()
  }

  #pause (workMs) {
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.consider()
    }, Math.max(1, workMs * PAUSE_PER_WORK))
    this.#timer.unref()
  }
}

module.exports = { ChunkCompressor }
