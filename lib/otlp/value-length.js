'use strict'

// How many bytes a value of an attribute takes exactly, as attribute-encoder.js writes it, and values cut to a number of bytes.

const { setOwn } = require('../span/any-value')
const { varintLength } = require('./proto-writer')

const TEXT_OVERHEAD = 5 // tag and length, also of a list or a map
const ELEMENT_OVERHEAD = 5 // of a list's member: tag and length
const ATTRIBUTE_OVERHEAD = 15 // tag, length, the key's and the value's
const DOUBLE_LENGTH = 9
const NEGATIVE_LENGTH = 11
const BYTES_OVERHEAD_MAX = 6

function attributesLength (list) {
  let length = 0
  for (let i = 0; i < list.length; i += 2) length += keyLength(list[i]) + valueLength(list[i + 1])
  return length
}

function keyLength (key) {
  return ATTRIBUTE_OVERHEAD + Buffer.byteLength(key)
}

function valueLength (value) {
  switch (typeof value) {
    case 'string': return TEXT_OVERHEAD + Buffer.byteLength(value)
    case 'boolean': return 2
    case 'number': return !Number.isSafeInteger(value) ? DOUBLE_LENGTH : value < 0 ? NEGATIVE_LENGTH : 1 + varintLength(value)
    default: return value === null ? 0 : objectLength(value)
  }
}

function objectLength (value) {
  if (value instanceof Uint8Array) return 1 + varintLength(value.length) + value.length
  let length = TEXT_OVERHEAD
  if (Array.isArray(value)) for (const member of value) length += ELEMENT_OVERHEAD + valueLength(member)
  else for (const key of Object.keys(value)) length += keyLength(key) + valueLength(value[key])
  return length
}

/** Whether a value gets shorter when it is cut. */
function isCuttable (value) {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

/**
 * The length to which the longest are to be cut so that all together take at most `room`. Below zero where nothing helps,
 * Infinity where nothing needs to be cut.
 */
function commonLength (lengths, room) {
  const longestFirst = lengths.toSorted((a, b) => b - a)
  let rest = longestFirst.reduce((sum, length) => sum + length, 0)
  if (rest <= room) return Infinity
  for (let i = 0; i < longestFirst.length; i++) {
    rest -= longestFirst[i]
    const each = Math.floor((room - rest) / (i + 1))
    if (i + 1 === longestFirst.length || each >= longestFirst[i + 1]) return each
  }
  return -1
}

/** A cuttable value that takes at most `lengthMax` bytes, which must be enough for an empty one. */
function cutValue (value, lengthMax) {
  if (typeof value === 'string') return cutText(value, lengthMax - TEXT_OVERHEAD)
  if (value instanceof Uint8Array) return value.subarray(0, Math.max(0, lengthMax - BYTES_OVERHEAD_MAX))
  const isList = Array.isArray(value)
  const members = isList
    ? value.map((member) => new Member(ELEMENT_OVERHEAD, '', member))
    : Object.keys(value).map((key) => new Member(keyLength(key), key, value[key]))
  const kept = cutMembers(members, lengthMax - TEXT_OVERHEAD)
  if (isList) return kept.map((member) => member.value)
  const map = {}
  for (const member of kept) setOwn(map, member.key, member.value)
  return map
}

/** Of a list or a map. Its length is counted once: megabytes take milliseconds. */
class Member {
  constructor (overhead, key, value) {
    this.overhead = overhead // what it takes beside its value
    this.key = key
    this.value = value
    this.length = valueLength(value)
    this.isCuttable = isCuttable(value)
  }

  cut (lengthMax) {
    if (this.isCuttable && this.length > lengthMax) this.value = cutValue(this.value, lengthMax)
    return this
  }
}

/** The longest members are cut; where that is not enough, the last ones are left out. */
function cutMembers (members, room) {
  let fixed = 0
  for (const member of members) fixed += member.overhead + (member.isCuttable ? 0 : member.length)
  const each = commonLength(members.filter((member) => member.isCuttable).map((member) => member.length), room - fixed)
  return each >= TEXT_OVERHEAD ? members.map((member) => member.cut(each)) : firstMembers(members, room)
}

function firstMembers (members, room) {
  const kept = []
  let left = room
  for (const member of members) {
    left -= member.overhead
    if (member.length > left) {
      if (member.isCuttable && left >= TEXT_OVERHEAD) kept.push(member.cut(left))
      break
    }
    kept.push(member)
    left -= member.length
  }
  return kept
}

/** At most `lengthMax` bytes of UTF-8, never a part of a character. */
function cutText (text, lengthMax) {
  const bytes = Buffer.from(text.slice(0, Math.max(0, lengthMax))) // no character is shorter than one byte for each unit
  if (bytes.length <= lengthMax && text.length <= lengthMax) return text
  let end = Math.min(bytes.length, lengthMax)
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

module.exports = { attributesLength, valueLength, isCuttable, cutValue, commonLength, cutText, TEXT_OVERHEAD }
