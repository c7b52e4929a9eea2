'use strict'

// The attributes of a connection, encoded once and copied into each span of it.

const { Buffer } = require('node:buffer')
const { ProtoWriter } = require('./proto-writer')
const { attributesBound, writeAttributes } = require('./attribute-encoder')

const TAG_ATTRIBUTE = 0x4a

/** @param {PeerFacts} peer HOT */
function peerBlock (peer) {
  return peer.encoded === null ? encode(peer) : peer.encoded
}

function encode (peer) {
  const list = peer.attributeList
  const memory = Buffer.alloc(attributesBound(list))
  const writer = new ProtoWriter()
  writer.open(memory, new DataView(memory.buffer, memory.byteOffset, memory.length), 0)
  writeAttributes(writer, TAG_ATTRIBUTE, list)
  peer.encoded = new Uint8Array(memory.subarray(0, writer.position))
  return peer.encoded
}

module.exports = { peerBlock }
