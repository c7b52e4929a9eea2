'use strict'

// The W3C `tracestate` header, level 2 (https://www.w3.org/TR/trace-context-2/):
// up to 32 members `key=value`, separated by commas, the latest writer first.
//
// A valid header is propagated as the string that was received. One invalid member discards the whole header, as the official test suite
// expects.

const { Buffer } = require('node:buffer')

const MEMBERS_MAX = 32
const KEY_CHARS_MAX = 256
const VALUE_CHARS_MAX = 256

const RAW_CHARS_MAX = 8192 // a longer header is discarded without being parsed

// W3C requires that at least 512 characters are propagated. A longer list loses whole members, those over 128 characters first.
const PROPAGATED_CHARS_MAX = 512
const LARGE_MEMBER_CHARS = 128

const TAB = 0x09
const SPACE = 0x20
const COMMA = 0x2c
const EQUALS = 0x3d

// Where a byte is allowed. Bytes beyond ASCII are allowed nowhere.
const KEY_START = 1
const KEY = 2
const VALUE = 4
const CLASS = new Uint8Array(256).fill(VALUE, SPACE, 0x7f)
CLASS[COMMA] = CLASS[EQUALS] = 0
for (const char of 'abcdefghijklmnopqrstuvwxyz0123456789') CLASS[char.charCodeAt(0)] |= KEY_START | KEY
for (const char of '_-*/@') CLASS[char.charCodeAt(0)] |= KEY

// The bytes of the text being parsed. V8 would check for each char of a string how the string is stored, see traceparent.js.
const list = Buffer.alloc(RAW_CHARS_MAX * 3)
let isOtSeen = false

/**
 * What to propagate of a header: usually the header itself, '' if it is absent, invalid or too long.
 * HOT, once per request with a tracestate. Budget: 1 string at most, each char read once.
 */
function cleanTracestate (value) {
  if (typeof value !== 'string' || value.length > RAW_CHARS_MAX) return ''
  let end = list.utf8Write(value, 0)
  while (end > 0 && isSpace(list[end - 1])) end--
  const start = skipSpace(0, end)
  isOtSeen = false
  let members = 0
  for (let at = start; at < end; at = skipSpace(at + 1, end)) {
    if (list[at] === COMMA) continue // empty members are allowed, and not counted
    at = memberEnd(at, end)
    if (at === -1 || ++members > MEMBERS_MAX) return ''
  }
  if (members === 0) return ''
  const kept = value.slice(start, end) // `value` itself if it has no space around it. Byte offsets work, because all is ASCII
  return kept.length > PROPAGATED_CHARS_MAX ? shorten(kept) : kept
}

/** Whether the list that was cleaned last had an OpenTelemetry member. Most lists have none, and need no further parsing. */
function hadOt () {
  return isOtSeen
}

/** The end of the member that begins at `at`: the index of a comma or the end of the list. -1 if the member is invalid. */
function memberEnd (at, end) {
  const equals = keyEnd(at, end)
  if (equals - at === 2 && list[at] === 0x6f && list[at + 1] === 0x74) isOtSeen = true
  return equals === -1 || equals === end || list[equals] !== EQUALS ? -1 : valueEnd(equals + 1, end)
}

function keyEnd (at, end) {
  if (at === end || (CLASS[list[at]] & KEY_START) === 0) return -1
  let i = at + 1
  while (i < end && (CLASS[list[i]] & KEY) !== 0) i++
  return i - at > KEY_CHARS_MAX ? -1 : i
}

// A value may start with spaces and contain them. Spaces at its end, and tabs, belong to the list.
function valueEnd (at, end) {
  let i = at
  while (i < end && (CLASS[list[i]] & VALUE) !== 0) i++
  let stop = i
  while (stop > at && list[stop - 1] === SPACE) stop--
  if (stop === at || stop - at > VALUE_CHARS_MAX) return -1
  const next = skipSpace(i, end)
  return next === end || list[next] === COMMA ? next : -1
}

/** Drops members of a valid list until it fits: first large ones from the end, then any from the end. */
function shorten (list) {
  const members = list.split(',').map(trimSpace).filter((member) => member !== '')
  let length = members.length - 1 // the commas
  for (const member of members) length += member.length
  for (const chars of [LARGE_MEMBER_CHARS, 0]) {
    for (let i = members.length - 1; i >= 0 && length > PROPAGATED_CHARS_MAX; i--) {
      if (members[i].length <= chars) continue
      length -= members[i].length + 1
      members.splice(i, 1)
    }
  }
  return members.join(',')
}

// Trims spaces and tabs only. `String#trim` removes other characters too, and `/[ \t]+$/` may take quadratic time.
function trimSpace (text) {
  let start = 0
  let end = text.length
  while (start < end && isSpace(text.charCodeAt(start))) start++
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function skipSpace (at, end) {
  while (at < end && isSpace(list[at])) at++
  return at
}

function isSpace (char) {
  return char === SPACE || char === TAB
}

/**
 * The API's TraceState over a list that `cleanTracestate` has accepted. Immutable, and parsed on demand.
 * If a key occurs twice, the first one counts, because the latest writer comes first.
 */
class TraceState {
  #text
  #members = null

  constructor (text = '') {
    this.#text = text
  }

  get (key) { return this.#read().get(key) }

  /** A state with `key` in front. The same state if the key or the value is invalid. */
  set (key, value) {
    if (!isAll(key, keyEnd) || !isAll(value, valueEnd) || isSpace(value.charCodeAt(value.length - 1))) return this
    const members = new Map([[key, value]])
    for (const [other, kept] of this.#read()) {
      if (members.size < MEMBERS_MAX && other !== key) members.set(other, kept)
    }
    return new TraceState(textOf(members))
  }

  unset (key) {
    if (!this.#read().has(key)) return this
    const members = new Map(this.#members)
    members.delete(key)
    return new TraceState(textOf(members))
  }

  serialize () { return this.#text }

  #read () {
    if (this.#members === null) {
      this.#members = new Map()
      for (const part of this.#text.split(',')) {
        const member = trimSpace(part)
        const equals = member.indexOf('=')
        const key = member.slice(0, equals)
        if (member !== '' && !this.#members.has(key)) this.#members.set(key, member.slice(equals + 1))
      }
    }
    return this.#members
  }
}

/** Whether the whole `text` is a key or a value. `endOf` is keyEnd or valueEnd. */
function isAll (text, endOf) {
  if (typeof text !== 'string' || text.length > list.length) return false
  const end = list.utf8Write(text, 0)
  return endOf(0, end) === end
}

function textOf (members) {
  return Array.from(members, ([key, value]) => `${key}=${value}`).join(',')
}

// OpenTelemetry's own member, in which samplers record how they decided:
//
//   ot=th:e666;rv:6e6d1a75832a2f
//
//   th   the rejection threshold, 1 to 14 hex digits of T = (1 - probability)*2^56 without its trailing zeros
//   rv   14 hex digits of randomness, used instead of the last 56 bits of the trace id
//
// Other keys are allowed and kept. A caller's values may be invalid.
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-handling/
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const OT_VALUE_CHARS_MAX = 256
const THRESHOLD = /^[0-9a-f]{1,14}$/
const RANDOMNESS = /^[0-9a-f]{14}$/

const ALWAYS = '0' // the threshold of a sampler that takes every trace

/** The digits of `th`, '' if it is missing or invalid. */
function thresholdOf (tracestate) {
  return otValue(tracestate, 'th:', THRESHOLD)
}

/** The 14 digits of `rv`, '' if it is missing or invalid. */
function randomnessOf (tracestate) {
  return otValue(tracestate, 'rv:', RANDOMNESS)
}

function otValue (tracestate, prefix, pattern) {
  if (!tracestate.includes('ot=')) return '' // avoids parsing the usual tracestate
  const found = partsOf(new TraceState(tracestate)).filter((part) => part.startsWith(prefix))
  const value = found.length === 1 ? found[0].slice(prefix.length) : '' // if it occurs twice, readers may disagree which one counts
  return pattern.test(value) ? value : ''
}

/** `tracestate` with this threshold instead of any other. The `ot` member moves to the front, as W3C requires for a changed member. */
function withThreshold (tracestate, threshold) {
  if (tracestate === '') return `ot=th:${threshold}`
  const state = new TraceState(tracestate)
  let value = `th:${threshold}`
  for (const part of otherParts(state)) {
    if (value.length + 1 + part.length <= OT_VALUE_CHARS_MAX) value += `;${part}`
  }
  return state.set('ot', value).serialize()
}

/** `tracestate` without a threshold, for a span of unknown probability. */
function withoutThreshold (tracestate) {
  if (!tracestate.includes('ot=')) return tracestate
  const state = new TraceState(tracestate)
  const others = otherParts(state)
  if (others.length === partsOf(state).length) return tracestate
  const rest = others.join(';')
  return rest === '' ? state.unset('ot').serialize() : state.set('ot', rest).serialize()
}

/** The text for `th` of a threshold with 24 high and 32 low bits. */
function thresholdText (high, low) {
  const digits = high.toString(16).padStart(6, '0') + low.toString(16).padStart(8, '0')
  return digits.replace(/0+$/, '') || '0' // eslint-disable-line regexp/no-super-linear-move -- 14 digits
}

function otherParts (state) {
  return partsOf(state).filter((part) => !part.startsWith('th:'))
}

function partsOf (state) {
  return (state.get('ot') ?? '').split(';').map(trimSpace).filter((part) => part !== '')
}

module.exports = { cleanTracestate, hadOt, TraceState, thresholdOf, randomnessOf, withThreshold, withoutThreshold, thresholdText, trimSpace, ALWAYS }
