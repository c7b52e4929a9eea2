'use strict'

// A piece of memory with encoded spans in it.
//
//   bytes  | scope_spans | scope_spans …       | free            |
//          0             ▲ scopeSpansStart        ▲ length          ▲ capacity

class Chunk {
  constructor (bytes) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.capacity = bytes.length
    this.length = 0
    this.spans = 0
    // The encoder's own: the scope of the scope_spans that it is writing, and where they start.
    this.scope = null
    this.scopeSpansStart = 0
    // The sender's: how often it was sent, its whole request body once gzipped, whether it must not be, and whether another
    // thread is reading its memory.
    this.attempts = 0
    this.body = null
    this.isUncompressed = false
    this.pinned = false
  }
}

// Stands for "there is no open chunk": nothing fits, so that the hot path needs no question of its own.
const NO_CHUNK = new Chunk(Buffer.allocUnsafeSlow(0))
NO_CHUNK.capacity = -1

module.exports = { Chunk, NO_CHUNK }
