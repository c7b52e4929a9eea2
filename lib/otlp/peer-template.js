'use strict'

// The attributes of a connection, encoded once and copied into each span of it.
//
// Where requests of one route follow each other on a connection, the route's template and these are joined: one copy is
// cheaper than two. Each connection has at most one such piece of memory, and few are made, since routes may take turns.

const { encodeAttributes } = require('./attribute-encoder')

const TAG_ATTRIBUTE = 0x4a
const JOINS_MAX = 4

/** How many bytes `copyShared` writes. HOT */
function sharedLength (peer, template) {
  return template.bytes.length + (peer.encoded === null ? encode(peer) : peer.encoded).length
}

/**
 * Writes what a span has in common with others of its route and its connection. HOT, once per sampled request.
 * @param {Buffer} bytes
 * @param {number} at
 * @param {PeerInfo} peer
 * @param {RouteTemplate} template
 */
function copyShared (bytes, at, peer, template) {
  if (peer.joinedWith === template) {
    bytes.set(peer.joined, at)
    return
  }
  bytes.set(template.bytes, at)
  bytes.set(peer.encoded, at + template.bytes.length)
  if (peer.joins < JOINS_MAX) joinWhenRepeated(peer, template)
}

function joinWhenRepeated (peer, template) {
  if (peer.template !== template) {
    peer.template = template
    return
  }
  peer.joins++
  peer.joinedWith = template
  peer.joined = new Uint8Array(sharedLength(peer, template))
  peer.joined.set(template.bytes)
  peer.joined.set(peer.encoded, template.bytes.length)
}

function encode (peer) {
  peer.encoded = new Uint8Array(encodeAttributes(TAG_ATTRIBUTE, peer.attributeList))
  return peer.encoded
}

module.exports = { sharedLength, copyShared }
