'use strict'

// A second reader of the W3C headers. It uses regular expressions, which our parsers do not, and checks our results for any text. Each
// check throws if it fails.

const assert = require('node:assert/strict')
const { parseTraceparent, formatTraceparent } = require('../../lib/context/traceparent')
const { cleanTracestate, TraceState, trimSpace } = require('../../lib/context/tracestate')
const { parseBaggage, serializeBaggage } = require('../../lib/context/baggage')

const MEMBER = /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/
const BAGGAGE_MEMBER = /^[!#$%&'*+.^`|~\w-]+=[!#-+\--:<-[\]-~]*(;[\t -+\--~]+)?$/

const prototypeNames = Object.getOwnPropertyNames(Object.prototype).length

function checkTraceparent (value) {
  const before = { t0: 1, t1: 2, t2: 3, t3: 4, p0: 5, p1: 6, flags: 7 }
  const target = { ...before }
  const expected = readTraceparent(value)
  assert.equal(parseTraceparent(value, target), expected !== null)
  if (expected === null) assert.deepEqual(target, before)
  else assert.equal(formatTraceparent({ ...target, s0: target.p0, s1: target.p1 }), expected)
}

/** Returns the outgoing traceparent for an incoming one, or null if that is invalid. */
function readTraceparent (value) {
  if (typeof value !== 'string') return null
  const match = /^[ \t]*([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^]*)?$/.exec(trimSpace(value))
  if (match === null) return null
  const [, version, trace, parent, flags, more] = match
  if (version === 'ff' || (version === '00' && more !== undefined) || /^0+$/.test(trace) || /^0+$/.test(parent)) return null
  return `00-${trace}-${parent}-0${parseInt(flags, 16) & 3}`
}

function checkTracestate (value) {
  const kept = cleanTracestate(value)
  const valid = readTracestate(value)
  if (valid === null) {
    assert.equal(kept, '')
    return
  }
  assert.ok(kept.length <= 512)
  assert.equal(cleanTracestate(kept), kept, 'the output is valid and stable')
  const members = readTracestate(kept) ?? []
  assert.ok(isSubsequence(members, valid), 'members are complete and in order')
  if (value.length <= 512) assert.deepEqual(members, valid)
  checkTraceState(kept, members, value)
}

function checkTraceState (text, members, value) {
  const state = new TraceState(text)
  for (const member of members) {
    const key = member.slice(0, member.indexOf('='))
    assert.equal(typeof state.get(key), 'string')
    assert.equal(state.unset(key).get(key), undefined)
  }
  for (const [key, given] of [[value, 'v'], ['k', value], [value.slice(0, 8), value.slice(8, 16)]]) {
    const changed = state.set(key, given)
    if (changed !== state) assert.notEqual(readTracestate(changed.serialize()), null, 'the new value is valid')
  }
}

/** Returns the members of a valid tracestate, or null. */
function readTracestate (value) {
  if (typeof value !== 'string' || value.length > 8192) return null
  const members = value.split(',').map((member) => member.replace(/^[ \t]+|[ \t]+$/g, '')).filter((member) => member !== '')
  return members.every((member) => MEMBER.test(member)) && members.length > 0 && members.length <= 32 ? members : null
}

function isSubsequence (some, all) {
  let at = 0
  for (const member of all) if (member === some[at]) at++
  return at === some.length
}

function checkBaggage (value) {
  const baggage = parseBaggage(value)
  const entries = baggage.getAllEntries()
  assert.ok(entries.length <= 180)
  for (const [key, entry] of entries) {
    assert.ok(key.length > 0 && typeof entry.value === 'string')
    assert.deepEqual(baggage.getEntry(key), entry)
  }
  checkSerialized(serializeBaggage(baggage))
  checkSerialized(serializeBaggage(baggage.setEntry(String(value), { value, metadata: value }).removeEntry('a')))
  assert.equal(Object.getOwnPropertyNames(Object.prototype).length, prototypeNames, 'no other member changes')
}

// The text follows the W3C grammar and limits, and does not change when it is parsed again.
function checkSerialized (text) {
  assert.ok(text.length <= 8192)
  if (text === '') return
  const members = text.split(',')
  assert.ok(members.length <= 180)
  for (const member of members) assert.match(member, BAGGAGE_MEMBER)
  assert.equal(serializeBaggage(parseBaggage(text)), text)
}

module.exports = { checkTraceparent, checkTracestate, checkBaggage }
