'use strict'

// Compression: gzip or zstd of what is sent, gzip of what waits for long.

const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers.js')

// On libuv's threads. node:zlib is loaded when it is needed: it takes 0.6 ms, and compression is off by default.

// Of gzip two thirds of the time of the default level for a few per cent more bytes: spans repeat themselves. Of zstd less of both.
const LEVEL = 1
// Most outages end before half of the buffer is full; until then compressing would be for nothing.
const COMPRESS_ABOVE = 1 / 2
// Compressing takes at most a tenth of one core, however fast the chunks come.
const PAUSE_PER_WORK = 9
// A chunk that saves less than this stays as it is.
const BYTES_SAVED_MIN = 1 / 4

const METHODS = { gzip: 'gzip', zstd: 'zstdCompress' } // of node:zlib, by content-encoding

/** Compresses a body. done(parts, encoding): as it is for '', in this turn, and without memory for zlib. */
function compressBody (encoding, parts, done) {
  if (encoding === '') return done(parts, '')
  inBackground(METHODS[encoding], parts, (error, body) => error === null ? done([body], encoding) : done(parts, ''))
}

/** Whether a server wants gzip, which each must take: to Jaeger and rotel zstd is broken protobuf (400). */
function refusesZstd (encoding, { status }) { return encoding === 'zstd' && (status === 400 || status === 415) }

/**
 * The content-encoding that an exporter's options ask for, '' for none.
 * @returns {'' | 'gzip' | 'zstd'}
 */
function encodingOf ({ compression }) { return compression === 'none' ? '' : compression }

/** Calls a method of node:zlib with several buffers as one. done(error, bytes) is called once, never in this turn. */
function inBackground (method, parts, done) {
  try {
    const zlib = require('node:zlib')
    const level = method === 'zstdCompress' ? { params: { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL } } : { level: LEVEL }
    zlib[method](Buffer.concat(parts), level, done)
  } catch (error) { // zlib allocates its window here, and there may be no memory
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
    const { shrinker } = this.#buffer
    if (shrinker !== null && shrinker.shrinkCompressed(this.#prefix, () => this.#work())) return
    const chunk = this.#buffer.oldestUncompressed()
    if (chunk === null) return
    const pause = this.#work()
    shrinker?.beforeCompressing(chunk)
    inBackground('gzip', [this.#prefix.head(chunk.length), chunk.bytes.subarray(0, chunk.length)], (error, body) => {
      const isSmaller = error === null && body.length <= chunk.capacity * (1 - BYTES_SAVED_MIN)
      if (!isSmaller) chunk.isUncompressed = true
      else if (this.#buffer.isWaiting(chunk)) this.#buffer.storeCompressed(chunk, body) // else it was sent or dropped meanwhile
      pause()
    })
  }

  /** Begins something; what it returns is called when that is done. */
  #work () {
    this.#isBusy = true
    const startedAt = monotonicNow()
    return () => {
      if (!this.#isOff) this.#timer = setTimeout(this.#onPaused, Math.max(1, (monotonicNow() - startedAt) * PAUSE_PER_WORK)).unref()
    }
  }

  // Makes a compressed chunk plain again, for a collector that does not take it compressed. done(hasWorked)
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
