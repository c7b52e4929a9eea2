'use strict'

const { test } = require('tap')
const { parseTraceparent, formatTraceparent } = require('../../lib/context/traceparent')

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const VALID = `00-${TRACE}-${PARENT}-01`
const UNTOUCHED = Object.freeze({ t0: 1, t1: 2, t2: 3, t3: 4, p0: 5, p1: 6, s0: 7, s1: 8, flags: 9 })
const PARSED = Object.freeze({
  t0: 0x0af76519, t1: 0x16cd43dd, t2: 0x8448eb21 | 0, t3: 0x1c80319c, p0: 0xb7ad6b71 | 0, p1: 0x69203331, s0: 7, s1: 8, flags: 1
})

function accepted (t, value, flags = 1, message = JSON.stringify(value)) {
  const target = { ...UNTOUCHED }
  t.equal(parseTraceparent(value, target), true, `accepts ${message}`)
  t.same(target, { ...PARSED, flags })
}

function refused (t, value, message = JSON.stringify(value)) {
  const target = { ...UNTOUCHED }
  t.equal(parseTraceparent(value, target), false, `refuses ${message}`)
  t.same(target, UNTOUCHED, 'and the target is unchanged')
}

test('a valid traceparent is parsed into words', async (t) => {
  accepted(t, VALID)
  accepted(t, `00-${TRACE}-${PARENT}-00`, 0)
})

test('formatting repeats what was parsed, digit by digit', async (t) => {
  const header = '00-0123456789abcdef8899aabbccddeeff-fedcba9876543210-03'
  const target = { ...UNTOUCHED }
  t.ok(parseTraceparent(header, target))
  t.equal(formatTraceparent({ ...target, s0: target.p0, s1: target.p1 }), header)
})

test('formatting writes version 00 and only the two known flags', async (t) => {
  const context = { t0: -1, t1: 0, t2: 0x0a, t3: 1 << 31, s0: 0, s1: 1, flags: 0xff }
  t.equal(formatTraceparent(context), '00-ffffffff000000000000000a80000000-0000000000000001-03')
  t.equal(formatTraceparent({ ...context, flags: 0 }).slice(-2), '00')
})

// S01
test('uppercase hex digits are rejected in every position', async (t) => {
  refused(t, VALID.toUpperCase())
  for (let i = 0; i < VALID.length; i++) {
    if (VALID[i] < 'a') continue
    refused(t, VALID.slice(0, i) + VALID[i].toUpperCase() + VALID.slice(i + 1))
  }
})

// S02
test('version ff and invalid versions are rejected', async (t) => {
  for (const version of ['ff', 'FF', '0g', '-1', '', '0', '000', '.0', '0.', ' 0']) {
    refused(t, `${version}-${TRACE}-${PARENT}-01`)
  }
})

// S03
test('version 00 may not be longer, whatever follows', async (t) => {
  for (const more of ['-extra', '.', '-', '0', '-01', ', ' + VALID]) refused(t, VALID + more)
})

// S04
test('the known part of later versions is read', async (t) => {
  accepted(t, `01-${TRACE}-${PARENT}-01`)
  accepted(t, `cc-${TRACE}-${PARENT}-01-x`)
  accepted(t, `cc-${TRACE}-${PARENT}-01-`)
  accepted(t, `fe-${TRACE}-${PARENT}-03`, 3)
})

// S05
test('later versions may be longer only after a further dash', async (t) => {
  refused(t, `cc-${TRACE}-${PARENT}-01.x`)
  refused(t, `cc-${TRACE}-${PARENT}-01x`)
  refused(t, `cc-${TRACE}-${PARENT}-1`)
  refused(t, `cc-${TRACE}-${PARENT}-01, cc-${TRACE}-${PARENT}-01`)
})

// S06
test('only the flags sampled and random are kept', async (t) => {
  accepted(t, `00-${TRACE}-${PARENT}-ff`, 3)
  accepted(t, `00-${TRACE}-${PARENT}-08`, 0)
  accepted(t, `00-${TRACE}-${PARENT}-80`, 0)
  accepted(t, `00-${TRACE}-${PARENT}-02`, 2)
  accepted(t, `cc-${TRACE}-${PARENT}-0a`, 2)
  refused(t, `00-${TRACE}-${PARENT}-0A`)
})

// S07
test('ids of zeros are rejected', async (t) => {
  const zeros = '0'.repeat(32)
  refused(t, `00-${zeros}-${PARENT}-01`)
  refused(t, `00-${TRACE}-${zeros.slice(16)}-01`)
  refused(t, `00-${zeros}-${zeros.slice(16)}-01`)
})

test('ids with a single digit that is not zero are accepted', async (t) => {
  for (let i = 0; i < 32; i++) {
    const target = { ...UNTOUCHED }
    t.ok(parseTraceparent(`00-${'0'.repeat(i)}8${'0'.repeat(31 - i)}-${PARENT}-00`, target))
    if (i < 16) t.ok(parseTraceparent(`00-${TRACE}-${'0'.repeat(i)}8${'0'.repeat(15 - i)}-00`, target))
  }
})

// S08
test('an invalid byte is rejected in every position', async (t) => {
  const foreign = ['\0', '\r', '\n', '\x7f', '\x80', '\xb0', '\xff', '\u0130', '\u0660', '\uff11', '\ud800', '/', ':', '`', 'g', ' ', '\t', '-', ',']
  for (let i = 0; i < VALID.length; i++) {
    for (const char of foreign) {
      if (char === VALID[i]) continue
      const value = VALID.slice(0, i) + char + VALID.slice(i + 1)
      const target = { ...UNTOUCHED }
      if (parseTraceparent(value, target)) t.fail(`accepted ${JSON.stringify(value)}`)
      if (JSON.stringify(target) !== JSON.stringify(UNTOUCHED)) t.fail(`touched by ${JSON.stringify(value)}`)
    }
  }
})

test('the internal form of a string does not matter', async (t) => {
  const long = `${'x'.repeat(40)}${VALID}${'\u2028'.repeat(40)}`
  accepted(t, long.slice(40, 95), 1, 'a slice of two-byte chars')
  accepted(t, `${'y'.repeat(40)}${VALID}`.slice(40), 1, 'a slice')
  accepted(t, ['00', TRACE, PARENT, '01'].reduce((all, part) => all + '-' + part), 1, 'pieces that were joined')
  accepted(t, Object.keys({ [VALID]: 1 })[0], 1, 'a name of a property')
  accepted(t, Buffer.from(VALID, 'latin1').toString('latin1'), 1, 'a string of its own')
})

test('a parsed value leaves nothing behind for the next', async (t) => {
  accepted(t, VALID)
  for (const value of [VALID.slice(1), VALID.slice(0, -1), `${VALID.slice(0, -1)}\u0131`, `${VALID.slice(0, 54)}\ud835`, '\u0130'.repeat(55), '\ud835\udfd8'.repeat(28).slice(0, 55)]) refused(t, value)
  accepted(t, VALID)
})

test('a dash in the wrong place is rejected', async (t) => {
  refused(t, `00${TRACE}-${PARENT}-01-`)
  refused(t, `00-${TRACE.slice(1)}-0${PARENT}-01`)
  refused(t, `00-${TRACE}${PARENT}---01`)
  refused(t, VALID.replaceAll('-', '_'))
})

// S09
test('16 KiB of anything are rejected', async (t) => {
  for (const char of ['a', '-', ',', '0', ' ', '\t', '\u2028']) refused(t, char.repeat(16384), `16 KiB of char ${char.charCodeAt(0)}`)
  refused(t, `${VALID}${'-'.repeat(16384)}`, 'a long version 00')
  accepted(t, `cc${VALID.slice(2)}-${'x'.repeat(16384)}`, 1, 'a long version cc')
})

test('surrounding spaces and tabs are trimmed, other whitespace is not', async (t) => {
  for (const [before, after] of [[' ', ''], ['\t', ''], ['', ' '], ['', '\t'], ['\t \t', ' \t '], [' '.repeat(8000), ' '.repeat(8000)]]) {
    accepted(t, before + VALID + after, 1, 'white space around it')
  }
  for (const space of ['\n', '\r', '\v', '\f', '\xa0', '\ufeff']) {
    refused(t, space + VALID)
    refused(t, VALID + space)
  }
})

// S13
test('a value that is not a string is not a traceparent', async (t) => {
  const values = [undefined, null, 55, true, [VALID], [VALID, VALID], { toString: () => VALID }, Symbol('traceparent'), Buffer.from(VALID), Object(VALID)]
  for (const value of values) refused(t, value, typeof value)
})
