'use strict'

const { test } = require('tap')
const { cleanTracestate, TraceState } = require('../../lib/context/tracestate')

const LOWER = 'abcdefghijklmnopqrstuvwxyz'

function kept (t, value, as = value) {
  t.equal(cleanTracestate(value), as, `keeps ${JSON.stringify(value.slice(0, 60))}`)
}

function discarded (t, value, message = JSON.stringify(value)) {
  t.equal(cleanTracestate(value), '', `discards ${message}`)
}

function members (count, member = (i) => `k${i}=${i}`) {
  return Array.from({ length: count }, (_, i) => member(i))
}

test('a valid tracestate is kept unchanged', async (t) => {
  kept(t, 'foo=1')
  kept(t, 'foo=1,bar=2')
  kept(t, 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE')
  kept(t, 'fw529a3039@dt=FfSr;1;0')
  kept(t, `a${LOWER}0123456789_-*/@=x`)
})

test('surrounding whitespace is removed, whitespace around members is kept', async (t) => {
  kept(t, ' \tfoo=1\t ', 'foo=1')
  kept(t, 'foo=1 \t , \t bar=2')
  kept(t, '\t foo=1\t \t,\t \tbar=2 ', 'foo=1\t \t,\t \tbar=2')
})

test('empty members are allowed and do not count', async (t) => {
  kept(t, 'foo=1,,bar=2')
  kept(t, ',foo=1, \t ,')
  kept(t, members(32).join(',,'))
})

test('a list of only empty members is no tracestate', async (t) => {
  for (const value of ['', ' ', '\t', ',', ' , ,\t,']) discarded(t, value)
})

test('a key begins with a letter or digit, followed by what level 2 allows', async (t) => {
  for (const key of ['a', '0', 'foo@', 'foo@@bar', 'foo@bar@baz', '1@-', 'z'.repeat(256), `${'t'.repeat(242)}@v`, `t@${'v'.repeat(15)}`]) {
    kept(t, `${key}=1`)
    kept(t, `foo=1,${key}=1`)
  }
  for (const key of ['', '@foo', '_foo', '-', '*', '/', 'FOO', 'foO', 'foo ', 'fo o', 'foo.bar', 'foo\t', 'f\u00f6', 'f\u0131', '\0', 'z'.repeat(257)]) {
    discarded(t, `${key}=1`)
    discarded(t, `bar=2,${key}=1`)
    discarded(t, `${key}=1,bar=2`)
  }
})

test('a value may contain every printable character except comma and equals', async (t) => {
  for (let code = 0; code < 300; code++) {
    const char = String.fromCharCode(code)
    const valid = code >= 0x20 && code < 0x7f && char !== ',' && char !== '='
    if (char === ',') continue
    t.equal(cleanTracestate(`foo=a${char}b`), valid ? `foo=a${char}b` : '', `char ${code}`)
  }
})

test('a value may begin with spaces but not end with one', async (t) => {
  kept(t, 'foo=  1')
  kept(t, 'foo= 1 2  ,bar= 3')
  discarded(t, 'foo= ')
  discarded(t, 'foo= ,bar=1')
  discarded(t, 'foo=\t')
  discarded(t, 'foo=\t1')
  discarded(t, 'foo=1\t2')
  discarded(t, 'foo=1 \t 2')
})

test('a value has 1 to 256 characters', async (t) => {
  kept(t, `foo=${'x'.repeat(256)}`)
  kept(t, `foo=${'x'.repeat(256)}  \t,bar=1`)
  discarded(t, `foo=${'x'.repeat(257)}`, '257 characters')
  discarded(t, 'foo=')
  discarded(t, 'foo=,bar=3')
})

test('one invalid member discards them all', async (t) => {
  discarded(t, '@foo=1,bar=2')
  discarded(t, 'bar=2,foo')
  discarded(t, 'bar=2,=1')
  discarded(t, 'bar=2,foo=bar=baz')
  discarded(t, 'bar=2;foo=1,\r\nevil=1')
})

// S10
test('33 members are too many', async (t) => {
  kept(t, members(32).join(','))
  discarded(t, members(33).join(','), '33 members')
  discarded(t, members(2000).join(','), '2,000 members')
})

// S10
test('more than 8 KiB are not read', async (t) => {
  kept(t, `foo=1${','.repeat(8187)}`, 'foo=1')
  discarded(t, `foo=1${','.repeat(8188)}`, '8,193 characters')
  discarded(t, ','.repeat(10000), '10,000 commas')
  discarded(t, `foo=${'x'.repeat(8188)}`, 'a value of 8 KiB')
  discarded(t, `${'x'.repeat(8190)}=1`, 'a key of 8 KiB')
  for (const char of 'a-, =') discarded(t, char.repeat(16384), `16 KiB of '${char}'`)
})

test('above 512 characters, large members are dropped first, from the end', async (t) => {
  const small = members(30, (i) => `k${i}=123456789`) // 30 members of 12 and 13 characters, 419 in all
  const large = `large=${'x'.repeat(123)}` // 129
  const border = `border=${'x'.repeat(121)}` // 128, not large
  t.equal(small.join(',').length, 409)
  kept(t, [large, ...small].join(','), small.join(','))
  kept(t, [...small, large].join(','), small.join(','))
  kept(t, [...small.slice(0, 10), large, ...small.slice(10)].join(','), small.join(','))
  kept(t, [border, ...small].join(','), [border, ...small.slice(0, 28)].join(','))
  const first = `one=${'x'.repeat(200)}`
  const second = `two=${'x'.repeat(200)}`
  const third = `three=${'x'.repeat(200)}`
  kept(t, [first, 'k=1', second, third].join(','), [first, 'k=1', second].join(','))
})

test('then whole members are dropped from the end until 512 characters are left', async (t) => {
  const list = members(32, (i) => `k${String(i).padStart(2, '0')}=${'x'.repeat(14)}`) // 18 characters each
  kept(t, list.join(','), list.slice(0, 27).join(','))
  t.equal(cleanTracestate(list.join(',')).length, 512)
  kept(t, `a=${'x'.repeat(254)},b=${'x'.repeat(253)}`) // 512
  kept(t, `a=${'x'.repeat(254)},b=${'x'.repeat(254)}`, `a=${'x'.repeat(254)}`) // 513
})

test('whitespace and empty members are dropped before any member', async (t) => {
  kept(t, `foo=1${' '.repeat(600)},${'\t'.repeat(600)},bar= 2`, 'foo=1,bar= 2')
})

test('a single member of more than 512 characters is dropped', async (t) => {
  kept(t, `${'k'.repeat(256)}=${'v'.repeat(256)}`, '')
})

// S11
test('a duplicate key is passed on unchanged', async (t) => {
  kept(t, 'foo=1,foo=1')
  kept(t, 'foo=1,foo=2')
})

// S13
test('a value that is not a string is not a tracestate', async (t) => {
  for (const value of [undefined, null, 1, true, ['foo=1'], { toString: () => 'foo=1' }, Symbol('foo=1')]) {
    t.equal(cleanTracestate(value), '')
  }
})

test('TraceState reads the members of the list', async (t) => {
  const state = new TraceState('foo=1 ,\tbar= 2,,foo=3')
  t.equal(state.get('foo'), '1')
  t.equal(state.get('bar'), ' 2')
  t.equal(state.get('baz'), undefined)
  t.equal(state.get('__proto__'), undefined)
  t.equal(state.get('constructor'), undefined)
  t.equal(state.serialize(), 'foo=1 ,\tbar= 2,,foo=3')
})

test('a TraceState without members is an empty string', async (t) => {
  t.equal(new TraceState().serialize(), '')
  t.equal(new TraceState('').get(''), undefined)
  t.equal(new TraceState('').set('a', '1').serialize(), 'a=1')
})

test('set puts a member first in a new TraceState', async (t) => {
  const state = new TraceState('foo=1,bar=2')
  t.equal(state.set('baz', '3').serialize(), 'baz=3,foo=1,bar=2')
  t.equal(state.set('bar', '4').serialize(), 'bar=4,foo=1')
  t.equal(state.set('bar', '4').get('bar'), '4')
  t.equal(state.serialize(), 'foo=1,bar=2', 'the old one is unchanged')
})

test('set ignores what a header may not carry', async (t) => {
  const state = new TraceState('foo=1')
  for (const [key, value] of [['', '1'], ['Foo', '1'], ['a b', '1'], ['@a', '1'], ['z'.repeat(257), '1'], [null, '1'], [{}, '1'],
    ['a', ''], ['a', 'b,c'], ['a', 'b=c'], ['a', 'b\r\nc'], ['a', 'b '], ['a', 'b\t'], ['a', '\u00e9'], ['a', 'x'.repeat(257)],
    ['a', `b${' '.repeat(30_000)}\r\nc`], ['a', 1], ['a', undefined]]) {
    t.equal(state.set(key, value).serialize(), 'foo=1')
  }
})

test('set keeps 32 members and drops the last', async (t) => {
  const state = new TraceState(members(32).join(','))
  t.equal(state.set('new', '1').serialize(), ['new=1', ...members(31)].join(','))
  t.equal(state.set('k31', 'x').serialize(), ['k31=x', ...members(31)].join(','))
})

test('unset removes a member in a new TraceState', async (t) => {
  const state = new TraceState('foo=1,bar=2,foo=3')
  t.equal(state.unset('foo').serialize(), 'bar=2')
  t.equal(state.unset('bar').unset('foo').serialize(), '')
  t.equal(state.unset('baz').serialize(), 'foo=1,bar=2,foo=3')
  t.equal(state.serialize(), 'foo=1,bar=2,foo=3', 'the old one is unchanged')
})
