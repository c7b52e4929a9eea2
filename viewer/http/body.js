'use strict'

// Reads the body of a request. It limits the size that is sent, the size after decompression, and the size of all bodies in progress.

const BODY_BYTES_MAX = 64 * 1024 * 1024
const UNDER_WAY_BYTES_MAX = 128 * 1024 * 1024

// A small gzip body may become 64 MiB, so only this many bodies are decompressed at a time.
const INFLATING_MAX = 2

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
    if (!['identity', 'gzip', 'x-gzip', 'deflate', ''].includes(encoding)) {
      throw new Refused(415, 'encoding', `content-encoding must be gzip, deflate or none, not ${encoding}`)
    }
    const body = await this.#collect(request)
    return encoding === 'identity' || encoding === '' ? body : this.#inflate(body, encoding)
  }

  #collect (request) {
    if (Number(request.headers['content-length']) > BODY_BYTES_MAX) throw tooLarge()
    return new Promise((resolve, reject) => {
      const pieces = []
      let length = 0
      const end = (settle, value) => {
        this.#underWay -= length
        length = 0
        request.removeAllListeners('data')
        request.resume() // the rest of the body is discarded
        settle(value)
      }
      request.on('data', (piece) => {
        pieces.push(piece)
        length += piece.length
        this.#underWay += piece.length
        if (length > BODY_BYTES_MAX) end(reject, tooLarge())
        else if (this.#underWay > UNDER_WAY_BYTES_MAX) end(reject, new Refused(503, 'busy', 'the viewer is receiving too much data. Try again later'))
      })
      request.on('end', () => end(resolve, pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)))
      request.on('error', () => end(reject, new Refused(400, 'aborted', 'the request was aborted')))
      request.on('close', () => { if (!request.complete) end(reject, new Refused(400, 'aborted', 'the request was aborted')) })
    })
  }

  async #inflate (body, encoding) {
    const { gunzip, inflate } = require('node:zlib')
    if (this.#inflating >= INFLATING_MAX) await new Promise((resolve) => this.#waiting.push(resolve))
    this.#inflating++
    try {
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

module.exports = { Bodies, Refused }
