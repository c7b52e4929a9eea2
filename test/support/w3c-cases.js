'use strict'

// The 41 cases of the W3C's test suite (w3c/trace-context, test/test.py, strict level 2, spec level 2), as data: the incoming headers
// and the conditions for each outgoing call. test/context/w3c.test.js runs them with our parsers, test/fastify/w3c.test.js with a
// service on a real socket.
//
// A step is { headers, calls, expect }:
//   headers   as sent, one pair a line, with their casing and white space
//   calls     how many calls the service makes, by default 1
//   expect    trace   'same' as the incoming one, or 'new', which then shares none of its digits
//             kept    members that must be in the outgoing tracestate, by name
//             order   the names of all members, in this order
//             gone    names that must not be in it
//             members how many there must be
//             random  the random flag is set
//             orders and counts hold for every call; all parent ids differ from the caller's and each other

const TRACE_ID = '12345678901234567890123456789012'
const PARENT_ID = '1234567890123456'

// The suite sends its traceparent cases sampled and its tracestate cases unsampled.
const SAMPLED = `00-${TRACE_ID}-${PARENT_ID}-01`
const UNSAMPLED = `00-${TRACE_ID}-${PARENT_ID}-00`

const same = { trace: 'same' }
const fresh = { trace: 'new' }
const discarded = { trace: 'same', members: 0 }

/** A request whose traceparent is `value`. */
function parent (value, expect) {
  return { headers: [['traceparent', value]], expect }
}

/** A request with a valid traceparent and a separate tracestate header for each of `values`. */
function state (values, expect) {
  return { headers: [['traceparent', UNSAMPLED], ...values.map((value) => ['tracestate', value])], expect }
}

function keeps (kept, more) {
  return { trace: 'same', kept, members: Object.keys(kept).length, ...more }
}

function numbered (from, to) {
  const members = []
  for (let i = from; i <= to; i++) {
    const number = String(i).padStart(2, '0')
    members.push(`bar${number}=${number}`)
  }
  return members.join(',')
}

const KEY = 'abcdefghijklmnopqrstuvwxyz0123456789_-*/'
const VALUE = Array.from({ length: 0x7f - 0x20 }, (_, i) => String.fromCharCode(0x20 + i)).filter((char) => char !== ',' && char !== '=').join('')
const TENS = [numbered(1, 10), numbered(11, 20), numbered(21, 30)]

const cases = [
  // ---- TraceContextTest
  ['both_traceparent_and_tracestate_missing', [{ headers: [], expect: fresh }]],
  ['traceparent_included_tracestate_missing', [parent(SAMPLED, same)]],
  ['traceparent_duplicated', [{
    headers: [['traceparent', `00-${TRACE_ID.slice(0, -1)}1-${PARENT_ID}-01`], ['traceparent', SAMPLED]],
    expect: { trace: 'new', notTrace: [`${TRACE_ID.slice(0, -1)}1`] }
  }]],
  ['traceparent_header_name', [
    { headers: [['trace-parent', SAMPLED]], expect: fresh },
    { headers: [['trace.parent', SAMPLED]], expect: fresh }
  ]],
  ['traceparent_header_name_valid_casing', [
    { headers: [['TraceParent', SAMPLED]], expect: same },
    { headers: [['TrAcEpArEnT', SAMPLED]], expect: same },
    { headers: [['TRACEPARENT', SAMPLED]], expect: same }
  ]],
  ['traceparent_version_0x00', [parent(`${SAMPLED}.`, fresh), parent(`${SAMPLED}-what-the-future-will-be-like`, fresh)]],
  ['traceparent_version_0xcc', [
    parent(`cc${SAMPLED.slice(2)}`, same),
    parent(`cc${SAMPLED.slice(2)}-what-the-future-will-be-like`, same),
    parent(`cc${SAMPLED.slice(2)}.what-the-future-will-be-like`, fresh)
  ]],
  ['traceparent_version_0xff', [parent(`ff${SAMPLED.slice(2)}`, fresh)]],
  ['traceparent_version_illegal_characters', [parent(`.0${SAMPLED.slice(2)}`, fresh), parent(`0.${SAMPLED.slice(2)}`, fresh)]],
  ['traceparent_version_too_long', [parent(`0${SAMPLED}`, fresh), parent(`00${SAMPLED}`, fresh)]],
  ['traceparent_version_too_short', [parent(SAMPLED.slice(1), fresh)]],
  ['traceparent_trace_id_all_zero', [parent(`00-${'0'.repeat(32)}-${PARENT_ID}-01`, fresh)]],
  ['traceparent_trace_id_illegal_characters', [
    parent(`00-.${TRACE_ID.slice(1)}-${PARENT_ID}-01`, fresh),
    parent(`00-${TRACE_ID.slice(0, -1)}.-${PARENT_ID}-01`, fresh)
  ]],
  ['traceparent_trace_id_too_long', [
    parent(`00-${TRACE_ID}3-${PARENT_ID}-01`, { trace: 'new', notTrace: [`${TRACE_ID.slice(1)}3`] })
  ]],
  ['traceparent_trace_id_too_short', [parent(`00-${TRACE_ID.slice(0, -1)}-${PARENT_ID}-01`, fresh)]],
  ['traceparent_parent_id_all_zero', [parent(`00-${TRACE_ID}-${'0'.repeat(16)}-01`, fresh)]],
  ['traceparent_parent_id_illegal_characters', [
    parent(`00-${TRACE_ID}-.${PARENT_ID.slice(1)}-01`, fresh),
    parent(`00-${TRACE_ID}-${PARENT_ID.slice(0, -1)}.-01`, fresh)
  ]],
  ['traceparent_parent_id_too_long', [parent(`00-${TRACE_ID}-${PARENT_ID}7-01`, fresh)]],
  ['traceparent_parent_id_too_short', [parent(`00-${TRACE_ID}-${PARENT_ID.slice(0, -1)}-01`, fresh)]],
  ['traceparent_trace_flags_illegal_characters', [
    parent(`00-${TRACE_ID}-${PARENT_ID}-.0`, fresh),
    parent(`00-${TRACE_ID}-${PARENT_ID}-0.`, fresh)
  ]],
  ['traceparent_trace_flags_too_long', [parent(`00-${TRACE_ID}-${PARENT_ID}-001`, fresh)]],
  ['traceparent_trace_flags_too_short', [parent(`00-${TRACE_ID}-${PARENT_ID}-1`, fresh)]],
  ['traceparent_ows_handling', [
    parent(` ${SAMPLED}`, same), parent(`\t${SAMPLED}`, same), parent(`${SAMPLED} `, same), parent(`${SAMPLED}\t`, same),
    parent(`\t ${SAMPLED} \t`, same)
  ]],
  ['tracestate_included_traceparent_missing', [
    { headers: [['tracestate', 'foo=1']], expect: { trace: 'new', members: 0 } },
    { headers: [['tracestate', 'foo=1,bar=2']], expect: { trace: 'new', members: 0 } }
  ]],
  ['tracestate_included_traceparent_included', [state(['foo=1,bar=2'], keeps({ foo: '1', bar: '2' }))]],
  ['tracestate_header_name', [
    { headers: [['traceparent', UNSAMPLED], ['trace-state', 'foo=1']], expect: discarded },
    { headers: [['traceparent', UNSAMPLED], ['trace.state', 'foo=1']], expect: discarded }
  ]],
  ['tracestate_header_name_valid_casing', ['TraceState', 'TrAcEsTaTe', 'TRACESTATE'].map((name) => (
    { headers: [['traceparent', UNSAMPLED], [name, 'foo=1']], expect: keeps({ foo: '1' }) }
  ))],
  ['tracestate_empty_header', [
    state([''], discarded), state(['foo=1', ''], keeps({ foo: '1' })), state(['', 'foo=1'], keeps({ foo: '1' }))
  ]],
  ['tracestate_multiple_headers_different_keys', [
    state(['foo=1,bar=2', 'rojo=1,congo=2', 'baz=3'],
      keeps({ foo: '1', bar: '2', rojo: '1', congo: '2', baz: '3' }, { order: ['foo', 'bar', 'rojo', 'congo', 'baz'] }))
  ]],
  // W3C allows us to forward both or one of them. We forward the header unchanged.
  ['tracestate_duplicated_keys', [
    state(['foo=1,foo=1'], { trace: 'same', order: ['foo', 'foo'], kept: { foo: '1' } }),
    state(['foo=1,foo=2'], { trace: 'same', order: ['foo', 'foo'], kept: { foo: '1' } }),
    state(['foo=1', 'foo=1'], { trace: 'same', order: ['foo', 'foo'], kept: { foo: '1' } }),
    state(['foo=1', 'foo=2'], { trace: 'same', order: ['foo', 'foo'], kept: { foo: '1' } })
  ]],
  ['tracestate_all_allowed_characters', [
    state([`${KEY}=${VALUE}`], keeps({ [KEY]: VALUE })),
    state([`${KEY}@a-z0-9_-*/=${VALUE}`], keeps({ [`${KEY}@a-z0-9_-*/`]: VALUE }))
  ]],
  ['tracestate_ows_handling', [
    state(['foo=1 \t , \t bar=2, \t baz=3'], keeps({ foo: '1', bar: '2', baz: '3' })),
    state(['foo=1\t \t,\t \tbar=2,\t \tbaz=3'], keeps({ foo: '1', bar: '2', baz: '3' })),
    ...[' foo=1', '\tfoo=1', 'foo=1 ', 'foo=1\t', '\t foo=1 \t'].map((value) => state([value], keeps({ foo: '1' })))
  ]],
  ['tracestate_key_illegal_characters', [state(['foo =1'], discarded), state(['FOO=1'], discarded), state(['foo.bar=1'], discarded)]],
  ['tracestate_key_illegal_vendor_format', [
    state(['foo@=1,bar=2'], keeps({ 'foo@': '1', bar: '2' })),
    state(['@foo=1,bar=2'], discarded),
    state(['foo@@bar=1,bar=2'], keeps({ 'foo@@bar': '1', bar: '2' })),
    state(['foo@bar@baz=1,bar=2'], keeps({ 'foo@bar@baz': '1', bar: '2' }))
  ]],
  ['tracestate_member_count_limit', [
    state([...TENS, numbered(31, 32)], { trace: 'same', kept: { bar01: '01', bar32: '32' }, members: 32 }),
    state([...TENS, numbered(31, 33)], discarded)
  ]],
  ['tracestate_key_length_limit', [
    state(['foo=1', `${'z'.repeat(256)}=1`], keeps({ foo: '1', ['z'.repeat(256)]: '1' })),
    state(['foo=1', `${'z'.repeat(257)}=1`], discarded),
    ...[`${'t'.repeat(241)}@${'v'.repeat(14)}`, `${'t'.repeat(242)}@v`, `t@${'v'.repeat(15)}`]
      .map((key) => state(['foo=1', `${key}=1`], keeps({ foo: '1', [key]: '1' })))
  ]],
  ['tracestate_value_illegal_characters', [state(['foo=bar=baz'], discarded), state(['foo=,bar=3'], discarded)]],

  // ---- AdvancedTest
  ['multiple_requests_with_valid_traceparent', [{ ...parent(SAMPLED, same), calls: 3 }]],
  ['multiple_requests_without_traceparent', [{ headers: [], calls: 3, expect: fresh }]],
  ['multiple_requests_with_illegal_traceparent', [{ ...parent(`00-${'0'.repeat(32)}-${PARENT_ID}-01`, fresh), calls: 3 }]],

  // ---- TraceContext2Test
  ['propagates_random_flag', [parent(`00-${TRACE_ID}-${PARENT_ID}-02`, { trace: 'same', random: true })]]
].map(([name, steps]) => ({ name, steps }))

module.exports = { cases, TRACE_ID, PARENT_ID }
