'use strict'

// Compresses request bodies with gzip or zstd, and chunks that wait for long with gzip.

const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers.js')

// It runs on libuv's threads. node:zlib is loaded on demand, because that takes 0.6 ms and compression is off by default.

// gzip at this level takes two thirds of the default level's time for a few per cent more bytes, because spans are repetitive. zstd takes
// less of both.
const LEVEL = 1
// Most outages end before half of the buffer is full. Compressing earlier would be wasted work.
const COMPRESS_ABOVE = 1 / 2
// Compressing takes at most a tenth of one core, however fast chunks arrive.
const PAUSE_PER_WORK = 9
// A chunk that compression shrinks by less than this stays uncompressed.
const BYTES_SAVED_MIN = 1 / 4

const METHODS = { gzip: 'gzip', zstd: 'zstdCompress' } // methods of node:zlib, by content-encoding

/** Compresses a body, then calls done(parts, encoding); for '' synchronously. If zlib is out of memory, the body stays uncompressed. */
function compressBody (encoding, parts, done) {
  if (encoding === '') return done(parts, '')
  inBackground(METHODS[encoding], parts, (error, body) => error === null ? done([body], encoding) : done(parts, ''))
}

/** Whether to retry with gzip, which every server must accept. Jaeger and rotel read zstd as broken protobuf and answer 400. */
function refusesZstd (encoding, { status }) { return encoding === 'zstd' && (status === 400 || status === 415) }

/**
 * Returns the content-encoding for an exporter's options, '' for none.
 * @returns {'' | 'gzip' | 'zstd'}
 */
function encodingOf ({ compression }) { return compression === 'none' ? '' : compression }

/** Calls a method of node:zlib with several buffers as one. Calls done(error, bytes) once, never synchronously. */
function inBackground (method, parts, done) {
  try {
    const zlib = require('node:zlib')
    const level = method === 'zstdCompress' ? { params: { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL } } : { level: LEVEL }
    zlib[method](Buffer.concat(parts), level, done)
  } catch (error) { // zlib allocates its window here, and may run out of memory
    process.nextTick(done, error)
  }
}

/**
 * Gzips waiting chunks during a long outage, about ten to one, so that the same buffer lasts ten times as long. A compressed chunk is a
 * whole request body including the resource, and is sent unchanged, because every OTLP server must accept gzip.
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
    const { shrinker } = this.#buffer
    if (shrinker !== null && shrinker.shrinkCompressed(this.#prefix, () => this.#work())) return
    const chunk = this.#buffer.oldestUncompressed()
    if (chunk === null) return
    const pause = this.#work()
    shrinker?.beforeCompressing(chunk)
    inBackground('gzip', [this.#prefix.head(chunk.length), chunk.bytes.subarray(0, chunk.length)], (error, body) => {
      const isSmaller = error === null && body.length <= chunk.capacity * (1 - BYTES_SAVED_MIN)
      if (!isSmaller) chunk.isUncompressed = true
      else if (this.#buffer.isWaiting(chunk)) this.#buffer.storeCompressed(chunk, body) // otherwise it was sent or dropped meanwhile
      pause()
    })
  }

  /** Marks the compressor busy. Returns the function to call when the work is done, which pauses the compressor. */
  #work () {
    this.#isBusy = true
    const startedAt = monotonicNow()
    return () => {
      if (!this.#isOff) this.#timer = setTimeout(this.#onPaused, Math.max(1, (monotonicNow() - startedAt) * PAUSE_PER_WORK)).unref()
    }
  }

  // Decompresses a chunk for a collector that does not accept gzip. Calls done(hasWorked).
  decompress (chunk, done) {
    inBackground('gunzip', [chunk.body], (error, bytes) => {
      if (error === null) this.#buffer.storePlain(chunk, bytes.subarray(bytes.length - chunk.length))
      done(error === null)
    })
  }

  stop () {
    this.#isOff = true
    clearTimeout(this.#timer)
  }

  #onPaused = () => {
    this.#isBusy = false
    this.consider()
  }
}

module.exports = { compressBody, refusesZstd, encodingOf, inBackground, ChunkCompressor }
