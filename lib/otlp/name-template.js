'use strict'

// The head, kind and name of a span that was started by its name alone, encoded once and copied into each.

const { Buffer } = require('node:buffer')
const { ownText } = require('../span/attribute-shape')
const { ProtoWriter } = require('./proto-writer')
const { text } = require('./attribute-encoder')
const { writeHead, OFFSET_FLAGS } = require('./route-template')

// Names may be made of anything. What does not fit is written anew each time.
const NAMES_MAX = 1000
const NAME_LENGTH_MAX = 100

const byKind = [new Map(), new Map(), new Map(), new Map(), new Map()]
let count = 0

/** @returns {Uint8Array | null} null: there is no more room for it. HOT, once per child span */
function nameTemplate ({ title, kind }) {
  return byKind[kind].get(title) ?? encode(title, kind)
}

/** Head, kind and name of a span, as its bytes begin. */
function headOf (kind, name) {
  const head = Buffer.alloc(OFFSET_FLAGS + 4)
  const writer = new ProtoWriter()
  writer.open(head, new DataView(head.buffer, head.byteOffset, head.length), 0)
  writeHead(writer)
  return Buffer.concat([head, Buffer.from([0x30, kind + 1]), text(0x2a, name)])
}

function encode (name, kind) {
  if (count === NAMES_MAX || name.length > NAME_LENGTH_MAX) return null
  count++
  const bytes = new Uint8Array(headOf(kind, name))
  byKind[kind].set(ownText(name), bytes)
  return bytes
}

module.exports = { nameTemplate, headOf }
