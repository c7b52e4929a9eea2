'use strict'

// Reads the body of a request. It limits the size that is sent, the size after decompression, and the size of all bodies in progress.

const BODY_BYTES_MAX = 64 * 1024 * 1024
const UNDER_WAY_BYTES_MAX = 128 * 1024 * 1024

// A piece needs this much in addition to its bytes. It counts, because a sender may send millions of pieces of one byte.
const PIECE_OVERHEAD_BYTES = 256

// A small gzip body may become 64 MiB, so only this many bodies are decompressed at a time.
const INFLATING_MAX = 2

const ENCODINGS = ['identity', 'gzip', 'x-gzip', 'deflate', '']

class Refused extends Error {
  constructor (status, reason, message) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

class Bodies {
  #underWay = 0
  #inflating = 0
  #waiting = []

  /** @returns {Promise<Buffer>} decompressed. @throws Refused */
  async read (request) {
    const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
    if (!ENCODINGS.includes(encoding)) {
      throw new Refused(415, 'encoding', `content-encoding must be gzip, deflate or none, not ${encoding}`)
    }
    if (Number(request.headers['content-length']) > BODY_BYTES_MAX) throw tooLarge()
    return this.receive(request, (bytes) => ({ bytes, encoding }))
  }

  /**
   * @param {import('node:stream').Readable} source a request of HTTP/1.1, or a stream of HTTP/2
   * @param {(body: Buffer) => { bytes: Buffer, encoding: string }} unpack finds the message in the body
   * @param {(pieces: Buffer[], length: number) => void} [check] called for each piece; refuses by throwing
   * @returns {Promise<Buffer>} the message, decompressed. @throws Refused
   */
  async receive (source, unpack, check) {
    const held = { bytes: 0 }
    try {
      const { bytes, encoding } = unpack(await this.#collect(source, held, check))
      return encoding === 'identity' || encoding === '' ? bytes : await this.#inflate(bytes, encoding, source)
    } finally {
      this.#underWay -= held.bytes
    }
  }

  #collect (source, held, check) {
    return new Promise((resolve, reject) => {
      const pieces = []
      let length = 0
      const end = (settle, value) => {
        source.removeAllListeners('data')
        source.resume() // the rest of the body is discarded
        pieces.length = 0
        settle(value)
      }
      const aborted = () => end(reject, new Refused(400, 'aborted', 'the request did not end'))
      source.on('data', (piece) => {
        pieces.push(piece)
        length += piece.length
        held.bytes += piece.length + PIECE_OVERHEAD_BYTES
        this.#underWay += piece.length + PIECE_OVERHEAD_BYTES
        try {
          check?.(pieces, length)
          if (length > BODY_BYTES_MAX) throw tooLarge()
          if (this.#underWay > UNDER_WAY_BYTES_MAX) throw new Refused(503, 'busy', 'the viewer is receiving too much data. Try again later')
        } catch (error) {
          end(reject, error)
        }
      })
      source.on('end', () => {
        if (source.aborted) aborted() // HTTP/2 ends a body that was broken off
        else end(resolve, pieces.length === 1 ? pieces[0] : Buffer.concat(pieces))
      })
      source.on('error', aborted)
      source.on('close', aborted) // of no effect after its end
    })
  }

  async #inflate (body, encoding, source) {
    const { gunzip, inflate } = require('node:zlib')
    if (this.#inflating >= INFLATING_MAX) await new Promise((resolve) => this.#waiting.push(resolve))
    this.#inflating++
    try {
      if (source.aborted) throw new Refused(400, 'aborted', 'the request did not end')
      return await new Promise((resolve, reject) => {
        const decompress = encoding === 'deflate' ? inflate : gunzip
        decompress(body, { maxOutputLength: BODY_BYTES_MAX }, (/** @type {NodeJS.ErrnoException} */ error, inflated) => {
          if (error === null) resolve(inflated)
          else reject(error.code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge() : new Refused(400, 'malformed', `the body is not ${encoding}`))
        })
      })
    } finally {
      this.#inflating--
      this.#waiting.shift()?.()
    }
  }
}

function tooLarge () {
  return new Refused(413, 'too_large', 'the body is larger than 64 MiB')
}

module.exports = { Bodies, Refused, ENCODINGS, BODY_BYTES_MAX, tooLarge }
