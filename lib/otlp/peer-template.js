'use strict'

// The attributes of a connection, encoded once and copied into each span of it.

const { encodeAttributes } = require('./attribute-encoder')

const TAG_ATTRIBUTE = 0x4a

/** @param {PeerInfo} peer HOT */
function peerBlock (peer) {
  return peer.encoded === null ? encode(peer) : peer.encoded
}

function encode (peer) {
  peer.encoded = new Uint8Array(encodeAttributes(TAG_ATTRIBUTE, peer.attributeList))
  return peer.encoded
}

module.exports = { peerBlock }
