'use strict'

// The head, kind, name and shared attributes of a call's span, encoded once and copied into each. Where its URL
// begins with an origin, that comes last and is open, so that the rest of the URL is written right behind it. The text of a
// Redis command is the same: it begins with the command's name.
//
//   4A 00 00 00 00 | 0A 08 "url.full" | 12 00 00 00 00 | 0A 00 00 00 00 "http://stock:3000"

const { Buffer } = require('node:buffer')
const { headOf } = require('./name-template')
const { writeLength4, writeText } = require('./proto-writer')
const { encodeAttributes, text } = require('./attribute-encoder')
const { TAG_ATTRIBUTE } = require('./route-template')

const OPEN = [0, 0, 0, 0] // a length that `writeRestOfUrl` patches

/** @param {CallInfo} info HOT */
function callTemplate (info) {
  return info.encoded === null ? encode(info) : info.encoded
}

function encode (info) {
  const shared = Buffer.concat([headOf(info.kind, info.name), encodeAttributes(TAG_ATTRIBUTE, info.attributeList)])
  info.urlOffset = shared.length + 1
  info.encoded = new Uint8Array(info.origin === '' ? shared : Buffer.concat([shared, openAttribute(info.openKey, info.origin)]))
  return info.encoded
}

function openAttribute (key, origin) {
  return Buffer.concat([Buffer.from([TAG_ATTRIBUTE, ...OPEN]), text(0x0a, key), Buffer.from([0x12, ...OPEN, 0x0a, ...OPEN]), Buffer.from(origin)])
}

/**
 * Writes the rest of the URL, or of the command, behind a template that was copied, and its lengths. HOT
 * @param {number} at of the length of the attribute
 * @param {number} position behind the template
 * @returns {number} where it ends
 */
function writeRestOfUrl (bytes, view, at, position, target) {
  const end = writeText(bytes, position, target)
  const valueAt = at + 4 + 2 + bytes[at + 5] + 1 // behind the key and its length
  const textAt = valueAt + 5
  writeLength4(view, textAt, end - textAt - 4)
  writeLength4(view, valueAt, end - valueAt - 4)
  writeLength4(view, at, end - at - 4)
  return end
}

module.exports = { callTemplate, writeRestOfUrl }
