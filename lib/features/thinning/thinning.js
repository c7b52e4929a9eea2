'use strict'

// Thinning where a buffer is full: which of its chunks, how much at once, and in the background those that are compressed.
// thin.js has what becomes of the spans of one.

const { thin, failedIn, Claims, LEVEL_MAX } = require('./thin.js')
const { Chunk } = require('../../export/chunk-buffer.js')
const { inBackground } = require('../../export/compressor.js')
const { attempt } = require('../../runtime/report.js')

// What is compressed cannot be thinned at once: it is thinned in the background where less than this is free.
const THIN_BELOW = 1 / 16
const BESIDE = 2 // chunks on each side of one: a request and its children are seldom further apart
const NO_TRACES = new Set()
const AT_ONCE_MAX = 1024 * 1024 // bytes, about a millisecond, of one allocation: then the oldest chunk goes

/** What a chunk has gone through. It hangs on the chunk. */
class Thinned {
  constructor (level, failedLevel) {
    this.level = level // that all its spans have gone through
    this.failedLevel = failedLevel // that of failed requests among them, which is lower
    this.failed = null // the traces of failed requests, once the chunks beside it, or compression, have asked
  }
}

function thinnedOf (chunk) { return (chunk.shrunk ??= new Thinned(0, 0)) }

class Thinning {
  #buffer
  #onGone
  #onFailed
  #bytesThinned = 0 // in one allocation
  #claims = new Claims()

  constructor (buffer, onGone, onFailed) {
    this.#buffer = buffer
    this.#onGone = onGone
    this.#onFailed = onFailed
  }

  /** An allocation begins, which may ask for room several times. */
  begin () { this.#bytesThinned = 0 }

  /** Thins the plain chunks that were thinned least, the oldest of these; false if there are none that can be thinned. */
  makeRoom () {
    if (this.#bytesThinned >= AT_ONCE_MAX) return false
    const chunks = this.#leastThinned(({ body }) => body === null)
    if (chunks.length === 0) return false
    // A span of megabytes is given up: thinning takes too long, and leaving it there would cost thousands of others.
    if (chunks[0].length > AT_ONCE_MAX) {
      this.#buffer.giveUp(chunks[0])
      return true
    }
    this.#bytesThinned += sum(chunks, 'length')
    const left = this.#thin(chunks, chunks.map(({ bytes, length }) => bytes.subarray(0, length)))
    if (left !== null) this.#replace(chunks, left)
    return left !== null
  }

  /** Notes which requests have failed in a chunk, for those beside it, before it is compressed. */
  beforeCompressing (chunk) {
    const isReadable = chunk.body === null && chunk.length <= AT_ONCE_MAX
    return (thinnedOf(chunk).failed ??= (isReadable ? attempt(() => failedIn(chunk.bytes, chunk.length)) : undefined) ?? NO_TRACES)
  }

  /**
   * Thins compressed chunks that stand together, and makes one of them, if memory is about to run out. Returns whether it does.
   * @param {ExportRequestPrefix} prefix of each body @param {() => () => void} begin what it returns is called when all is done
   */
  shrinkCompressed (prefix, begin) {
    const chunks = this.#compressedToThin()
    if (chunks.length === 0) return false
    const done = begin()
    inBackground('gunzip', chunks.map(({ body }) => body), (error, bytes) => {
      if (error !== null) return done()
      let end = 0
      const plain = chunks.map(({ length }) => {
        end += prefix.head(length).length + length
        return bytes.subarray(end - length, end)
      })
      const left = this.#areWaiting(chunks) ? this.#thin(chunks, plain) : null
      if (left === null) return done()
      const { made } = left
      this.beforeCompressing(made)
      inBackground('gzip', [prefix.head(made.length), made.bytes], (error, body) => {
        if (error === null && this.#areWaiting(chunks)) {
          made.compress(body)
          this.#replace(chunks, left)
        }
        done()
      })
    })
    return true
  }

  #compressedToThin () {
    const { waiting, bytesMax } = this.#buffer
    if (this.#buffer.hasRoomFor(bytesMax * THIN_BELOW)) return []
    const chunks = this.#leastThinned(({ body }) => body !== null)
    return chunks.length > 0 && waiting.some((chunk) => chunk.body === null && thinnedOf(chunk).level < thinnedOf(chunks[0]).level) ? [] : chunks
  }

  #areWaiting (chunks) { return chunks.every((chunk) => chunk.body !== null && this.#buffer.isWaiting(chunk)) }

  #failedBeside (chunks) {
    const { waiting } = this.#buffer
    const from = waiting.indexOf(chunks[0])
    const to = from + chunks.length
    return [...waiting.slice(Math.max(0, from - BESIDE), from), ...waiting.slice(to, to + BESIDE)].map((chunk) => this.beforeCompressing(chunk))
  }

  /** All but the newest come first: whether its last requests fail is in the chunk that is behind it. */
  #leastThinned (accepts) {
    const { waiting } = this.#buffer
    const chunks = this.#leastThinnedOf(waiting.slice(0, -1), accepts)
    return chunks.length > 0 ? chunks : this.#leastThinnedOf(waiting, accepts)
  }

  /** The first of the chunks with the lowest level, and those behind it that make up a chunk with it: else there would be ever more. */
  #leastThinnedOf (queue, accepts) {
    let first = -1
    let level = LEVEL_MAX
    for (let i = 0; i < queue.length && level > 0; i++) {
      const own = thinnedOf(queue[i]).level
      if (own >= level || !accepts(queue[i])) continue
      first = i
      level = own
    }
    if (first === -1) return []
    let end = first + 1
    for (let { length } = queue[first]; end < queue.length; end++) {
      length += queue[end].length
      if (length > this.#buffer.chunkBytes || thinnedOf(queue[end]).level !== level || !accepts(queue[end])) break
    }
    return queue.slice(first, end)
  }

  /**
   * One chunk of what stays of some that stand together, not yet in the queue, and how many went without another that stands for
   * them. `plain` are the bytes of each. Null after a bug, or for want of memory: they are not thinned again.
   */
  #thin (chunks, plain) {
    const buffer = this.#buffer
    try {
      const bytes = plain.length === 1 ? plain[0] : Buffer.concat(plain)
      const failedLevel = Math.min(...chunks.map((chunk) => thinnedOf(chunk).failedLevel))
      const bytesMax = chunks[0].body === null ? buffer.roomInPlaceOf(chunks) : Infinity // compressed it is another size
      const left = thin({ bytes, length: bytes.length, failedLevel, chunkBytes: buffer.chunkBytes, bytesMax, failedBeside: this.#failedBeside(chunks) }, thinnedOf(chunks[0]).level + 1, this.#claims)
      const made = new Chunk(left.bytes, null, left.bytes.length, left.spans)
      made.shrunk = new Thinned(left.level, left.failedLevel)
      return { made, surplus: left.surplus }
    } catch (error) {
      this.#onFailed(error)
    }
    for (const chunk of chunks) thinnedOf(chunk).level = LEVEL_MAX
    return null
  }

  #replace (chunks, { made, surplus }) {
    if (!this.#buffer.replace(chunks, made)) return
    if (surplus > 0) this.#onGone(surplus, 0)
    this.#onGone(sum(chunks, 'spans') - made.spans - surplus, made.shrunk.level)
  }
}

function sum (list, key) { return list.reduce((total, one) => total + one[key], 0) }

module.exports = { shrinker: (buffer, onGone, onFailed) => new Thinning(buffer, onGone, onFailed) }
