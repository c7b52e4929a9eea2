'use strict'

// The head, kind, name and shared attributes of a call's span, encoded once and copied into each.

const { Buffer } = require('node:buffer')
const { ProtoWriter } = require('./proto-writer')
const { encodeAttributes, text } = require('./attribute-encoder')
const { writeHead, TAG_ATTRIBUTE, OFFSET_FLAGS } = require('./route-template')

/** @param {CallFacts} facts HOT */
function callTemplate (facts) {
  return facts.encoded === null ? encode(facts) : facts.encoded
}

function encode (facts) {
  const head = Buffer.alloc(OFFSET_FLAGS + 4)
  const writer = new ProtoWriter()
  writer.open(head, new DataView(head.buffer, head.byteOffset, head.length), 0)
  writeHead(writer)
  facts.encoded = new Uint8Array(Buffer.concat([
    head, Buffer.from([0x30, facts.kind + 1]), text(0x2a, facts.name), encodeAttributes(TAG_ATTRIBUTE, facts.attributeList)
  ]))
  return facts.encoded
}

module.exports = { callTemplate }
