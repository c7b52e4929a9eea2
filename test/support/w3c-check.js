'use strict'

// Checks outgoing headers with an independent parser that is as strict as the W3C's.

const { TRACE_ID, PARENT_ID } = require('./w3c-cases')

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const MEMBER = /^([a-z0-9][a-z0-9_\-*/@]{0,255})=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])$/

/**
 * @param {object} t a tap test
 * @param {object} step of w3c-cases.js
 * @param {[string, string][][]} calls the headers of each outgoing call
 */
function checkStep (t, { calls: expectedCalls = 1, expect }, calls) {
  t.equal(calls.length, expectedCalls, 'every call was made')
  const parsed = calls.map((headers) => parseHeaders(t, headers))
  t.equal(new Set(parsed.map(({ traceId }) => traceId)).size, 1, 'all calls are in one trace')
  t.equal(new Set(parsed.map(({ parentId }) => parentId)).size, expectedCalls, 'each call has its own parent id')
  for (const call of parsed) checkCall(t, expect, call)
}

function checkCall (t, { trace, notTrace = [], kept = {}, order, members, random }, call) {
  if (trace === 'same') t.equal(call.traceId, TRACE_ID, 'the trace continues')
  else t.notOk([TRACE_ID, ...notTrace].includes(call.traceId), 'the trace is new')
  t.not(call.parentId, PARENT_ID, 'the parent is not the caller')
  for (const [key, value] of Object.entries(kept)) {
    t.equal(call.members.find(([name]) => name === key)?.[1], value, `member ${key.slice(0, 40)} is kept`)
  }
  if (order !== undefined) t.same(call.members.map(([name]) => name), order, 'members are in order')
  if (members !== undefined) t.equal(call.members.length, members, `${members} members`)
  if (random) t.equal(call.flags & 0x02, 0x02, 'the random flag is kept')
  // W3C defines only these two flags. Unknown flags must not be forwarded.
  t.equal(call.flags & ~0x03, 0, 'no unknown flag is set')
}

function parseHeaders (t, headers) {
  const traceparents = valuesOf(headers, 'traceparent')
  t.equal(traceparents.length, 1, 'there is one traceparent')
  const [, traceId, parentId, flags] = TRACEPARENT.exec(traceparents[0]) ?? t.fail(`illegal traceparent ${traceparents[0]}`) ?? []
  t.notMatch(traceId, /^0+$/, 'the trace id is not zero')
  t.notMatch(parentId, /^0+$/, 'the parent id is not zero')
  const members = []
  for (const part of valuesOf(headers, 'tracestate').join(',').split(/[ \t]*,[ \t]*/)) {
    if (part === '') continue
    const match = MEMBER.exec(part)
    if (match === null) t.fail(`illegal member ${part}`)
    else members.push([match[1], match[2]])
  }
  return { traceId, parentId, flags: parseInt(flags, 16), members }
}

function valuesOf (headers, name) {
  return headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)
}

module.exports = { checkStep, parseHeaders }
