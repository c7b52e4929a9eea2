'use strict'

// Chooses which chunks of a full buffer are thinned, and how many at once. Compressed chunks are thinned in the background. thin.js
// thins the spans of one chunk.

const { thin, failedIn, Claims, LEVEL_MAX } = require('./thin.js')
const { Chunk } = require('../../export/chunk-buffer.js')
const { inBackground } = require('../../export/compressor.js')
const { attempt } = require('../../runtime/report.js')

// Compressed chunks cannot be thinned synchronously. They are thinned in the background when less than this part of the buffer is free.
const THIN_BELOW = 1 / 16
const BESIDE = 2 // neighbours on each side: a request and its children are rarely further apart
const NO_TRACES = new Set()
const AT_ONCE_MAX = 1024 * 1024 // bytes for one allocation, about a millisecond; beyond that the oldest chunk is dropped

/** How far a chunk has been thinned; kept on the chunk. */
class Thinned {
  constructor (level, failedLevel) {
    this.level = level
    this.failedLevel = failedLevel // the level of its failed requests, at most `level`
    this.failed = null // the traces of failed requests, computed when a neighbouring chunk is thinned or this one is compressed
  }
}

function thinnedOf (chunk) { return (chunk.shrunk ??= new Thinned(0, 0)) }

class Thinning {
  #buffer
  #onGone
  #onFailed
  #bytesThinned = 0 // in the current allocation
  #claims = new Claims()

  constructor (buffer, onGone, onFailed) {
    this.#buffer = buffer
    this.#onGone = onGone
    this.#onFailed = onFailed
  }

  /** Called when an allocation begins; it may call makeRoom() several times. */
  begin () { this.#bytesThinned = 0 }

  /** Thins the oldest of the least thinned uncompressed chunks; false if no chunk can be thinned. */
  makeRoom () {
    if (this.#bytesThinned >= AT_ONCE_MAX) return false
    const chunks = this.#leastThinned(({ body }) => body === null)
    if (chunks.length === 0) return false
    // Drops a chunk with a span of megabytes: thinning it would take too long, and keeping it would cost thousands of other spans.
    if (chunks[0].length > AT_ONCE_MAX) {
      this.#buffer.giveUp(chunks[0])
      return true
    }
    this.#bytesThinned += sum(chunks, 'length')
    const left = this.#thin(chunks, chunks.map(({ bytes, length }) => bytes.subarray(0, length)))
    if (left !== null) this.#replace(chunks, left)
    return left !== null
  }

  /** Notes which requests failed in a chunk before it is compressed, because its neighbours need to know. */
  beforeCompressing (chunk) {
    const isReadable = chunk.body === null && chunk.length <= AT_ONCE_MAX
    return (thinnedOf(chunk).failed ??= (isReadable ? attempt(() => failedIn(chunk.bytes, chunk.length)) : undefined) ?? NO_TRACES)
  }

  /**
   * Thins adjacent compressed chunks and merges them into one, if the buffer is almost full. Returns whether it does so.
   * @param {ExportRequestPrefix} prefix of each body @param {() => () => void} begin returns a function to call when this is done
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

  /** The newest chunk is the last choice, because the chunk after it may show that its last requests failed. */
  #leastThinned (accepts) {
    const { waiting } = this.#buffer
    const chunks = this.#leastThinnedOf(waiting.slice(0, -1), accepts)
    return chunks.length > 0 ? chunks : this.#leastThinnedOf(waiting, accepts)
  }

  /** The first chunk with the lowest level, and the following ones that fit into one chunk with it, or the number of chunks would keep growing. */
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
   * Thins adjacent chunks into one new chunk, which is not yet in the queue. `plain` has the bytes of each chunk. `surplus` is the number
   * of dropped spans that no remaining span represents. Returns null after a bug or if memory is short: the chunks are not thinned again.
   */
  #thin (chunks, plain) {
    const buffer = this.#buffer
    try {
      const bytes = plain.length === 1 ? plain[0] : Buffer.concat(plain)
      const failedLevel = Math.min(...chunks.map((chunk) => thinnedOf(chunk).failedLevel))
      const bytesMax = chunks[0].body === null ? buffer.roomInPlaceOf(chunks) : Infinity // the size after compression is unknown
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
