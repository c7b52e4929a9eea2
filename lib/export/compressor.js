'use strict'

// Gzip on libuv's threads. node:zlib is loaded when it is needed: it takes 0.6 ms, and compression is off by default.

const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers')

// Two thirds of the time of the default level for a few per cent more bytes: spans repeat themselves.
const LEVEL = 1
// Most outages end before half of the buffer is full; until then compressing would be for nothing.
const COMPRESS_ABOVE = 1 / 2
// Compressing takes at most a tenth of one core, however fast the chunks come.
const PAUSE_PER_WORK = 9
// A chunk that saves less than this stays as it is.
const BYTES_SAVED_MIN = 1 / 4

// Makes one gzip member of several buffers, which must not change before done(error, bytes) is called: once, never in this turn.
function gzip (parts, done) {
  collect(() => require('node:zlib').createGzip({ level: LEVEL }), parts, done)
}

function collect (create, parts, done) {
  let stream
  try {
    stream = create()
  } catch (error) { // zlib allocates its window here, and may find no memory
    process.nextTick(done, error, null)
    return
  }
  const out = []
  stream.on('data', (bytes) => out.push(bytes))
  stream.once('error', (error) => done(error, null))
  stream.once('end', () => done(null, Buffer.concat(out)))
  for (const bytes of parts) stream.write(bytes)
  stream.end()
}

/**
 * Gzips the waiting chunks during a long outage, some ten to one, so that the same buffer lasts ten times as long. A
 * compressed chunk is a whole request body, resource included, and is sent as it is; every OTLP server must take gzip.
 */
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
    if (this.#buffer.bytes <= this.#buffer.bytesMax * COMPRESS_ABOVE) return
    const chunk = this.#buffer.oldestUncompressed()
    if (chunk === null) return
    this.#isBusy = chunk.pinned = true
    const startedAt = monotonicNow()
    const parts = [this.#prefix.head(chunk.length), chunk.bytes.subarray(0, chunk.length)]
    gzip(parts, (error, body) => this.#onCompressed(chunk, error, body, monotonicNow() - startedAt))
  }

  // Makes a compressed chunk plain again, for a collector that does not take it compressed. done(hasWorked)
  decompress (chunk, done) {
    collect(() => require('node:zlib').createGunzip(), [chunk.body], (error, bytes) => {
      if (error === null) this.#buffer.storePlain(chunk, bytes.subarray(bytes.length - chunk.length))
      done(error === null)
    })
  }

  stop () {
    this.#isOff = true
    clearTimeout(this.#timer)
  }

  #onCompressed (chunk, error, body, workMs) {
    this.#isBusy = false
    if (!chunk.pinned) return // dropped meanwhile, by a close whose deadline came
    chunk.pinned = false
    if (error === null && body.length <= chunk.capacity * (1 - BYTES_SAVED_MIN)) this.#buffer.storeCompressed(chunk, body)
    else chunk.isUncompressed = true
    if (!this.#isOff) this.#timer = setTimeout(this.#onPaused, Math.max(1, workMs * PAUSE_PER_WORK)).unref()
    this.#onDone()
  }

  #onPaused = () => {
    this.#timer = null
    this.consider()
  }
}

module.exports = { gzip, ChunkCompressor }
