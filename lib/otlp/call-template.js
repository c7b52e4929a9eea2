'use strict'

// The head, kind, name and shared attributes of a call's span, encoded once and copied into each. Where its URL
// begins with an origin, that comes last and is open, so that the rest of the URL is written right behind it:
//
//   4A 00 00 00 00 | 0A 08 "url.full" | 12 00 00 00 00 | 0A 00 00 00 00 "http://stock:3000"

const { Buffer } = require('node:buffer')
const { ProtoWriter, writeLength4 } = require('./proto-writer')
const { encodeAttributes, text } = require('./attribute-encoder')
const { writeHead, TAG_ATTRIBUTE, OFFSET_FLAGS } = require('./route-template')

const KEY = text(0x0a, 'url.full')
const OPEN = [0, 0, 0, 0] // a length that `writeTarget` patches

/** @param {CallFacts} facts HOT */
function callTemplate (facts) {
  return facts.encoded === null ? encode(facts) : facts.encoded
}

function encode (facts) {
  const head = Buffer.alloc(OFFSET_FLAGS + 4)
  const writer = new ProtoWriter()
  writer.open(head, new DataView(head.buffer, head.byteOffset, head.length), 0)
  writeHead(writer)
  const shared = Buffer.concat([
    head, Buffer.from([0x30, facts.kind + 1]), text(0x2a, facts.name), encodeAttributes(TAG_ATTRIBUTE, facts.attributeList)
  ])
  facts.urlOffset = shared.length + 1
  facts.encoded = new Uint8Array(facts.origin === '' ? shared : Buffer.concat([shared, openUrl(facts.origin)]))
  return facts.encoded
}

function openUrl (origin) {
  return Buffer.concat([Buffer.from([TAG_ATTRIBUTE, ...OPEN]), KEY, Buffer.from([0x12, ...OPEN, 0x0a, ...OPEN]), Buffer.from(origin)])
}

/**
 * Writes the rest of the URL behind a template that was copied, and its lengths. HOT
 * @param {ProtoWriter} writer
 * @param {number} at of the length of the attribute
 */
function writeTarget (writer, at, target) {
  writer.text(target)
  const valueAt = at + 4 + KEY.length + 1
  const textAt = valueAt + 5
  writeLength4(writer.view, textAt, writer.position - textAt - 4)
  writeLength4(writer.view, valueAt, writer.position - valueAt - 4)
  writeLength4(writer.view, at, writer.position - at - 4)
}

module.exports = { callTemplate, writeTarget }
