'use strict'

const { test } = require('tap')
const crypto = require('node:crypto')
const { execFileSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const ids = require('../../lib/context/ids')

function newTarget () {
  return { t0: 0, t1: 0, t2: 0, t3: 0, s0: 0, s1: 0 }
}

// A copy of ids.js with a replaced generator.
function idsFilledWith (t, fill) {
  return t.mockRequire('../../lib/context/ids', {
    'node:crypto': { ...crypto, randomFillSync: fill }
  })
}

test('span ids are different every time, and do not change the trace id', async (t) => {
  const target = newTarget()
  const seen = new Set()
  for (let i = 0; i < 20000; i++) {
    ids.newTraceId(target)
    seen.add(ids.hex(target.t0) + ids.hex(target.t1) + ids.hex(target.t2) + ids.hex(target.t3))
  }
  t.equal(seen.size, 20000)
})

test('span ids are different every time, and leave the trace id alone', async (t) => {
  const target = newTarget()
  const seen = new Set()
  for (let i = 0; i < 20000; i++) {
    ids.newSpanId(target)
    seen.add(ids.hex(target.s0) + ids.hex(target.s1))
  }
  t.equal(seen.size, 20000)
  t.match(target, { t0: 0, t1: 0, t2: 0, t3: 0 })
})

test('every bit of an id is random', async (t) => {
  const target = newTarget()
  const words = ['t0', 't1', 't2', 't3', 's0', 's1']
  const ever = Object.fromEntries(words.map((word) => [word, 0]))
  const always = Object.fromEntries(words.map((word) => [word, -1]))
  for (let i = 0; i < 1000; i++) {
    ids.newTraceId(target)
    ids.newSpanId(target)
    for (const word of words) {
      ever[word] |= target[word]
      always[word] &= target[word]
    }
  }
  for (const word of words) t.same([ever[word], always[word]], [-1, 0], word)
})

test('words are int32, as the encoder writes them', async (t) => {
  const target = newTarget()
  for (let i = 0; i < 100; i++) {
    ids.newTraceId(target)
    for (const word of Object.values(target)) t.equal(word | 0, word)
  }
})

test('an id of zeros, which W3C forbids, is drawn again', async (t) => {
  let fills = 0
  const { newTraceId, newSpanId } = idsFilledWith(t, (pool, from) => {
    pool.fill(0, from)
    if (fills++ === 0) return
    pool[from + 3] = 7
    pool[from + 5] = 9
  })
  const target = newTarget()
  newTraceId(target)
  t.match(target, { t0: 0, t1: 0, t2: 0, t3: 7 })
  newSpanId(target)
  t.match(target, { s0: 0, s1: 9 })
  t.equal(fills, 2)
})

test('a pool is used to its last words and then filled again', async (t) => {
  let next = 1
  const { newSpanId } = idsFilledWith(t, (pool, from) => {
    for (let i = from; i < pool.length; i++) pool[i] = next++
  })
  const target = newTarget()
  for (let expected = 1; expected < 20000; expected += 2) {
    newSpanId(target)
    if (target.s0 !== expected || target.s1 !== expected + 1) t.match(target, { s0: expected, s1: expected + 1 })
  }
  t.equal(target.s1, 20000)
})

// L12: random bytes that are drawn at load would be the same in every process that is restored from the snapshot.
test('loading the module draws nothing from the generator', async (t) => {
  let fills = 0
  idsFilledWith(t, () => fills++)
  t.equal(fills, 0)
})

// L12. A snapshot's entry is a single file, so it begins with a copy of ids.js.
test('a process restored from a startup snapshot draws its own ids', async (t) => {
  const source = readFileSync(require.resolve('../../lib/context/ids'), 'utf8')
  const cwd = t.testdir({
    'entry.js': `const module = {}; ${source}
      const target = { s0: 0, s1: 0 }
      newSpanId(target)
      startupSnapshot.setDeserializeMainFunction(() => {
        newSpanId(target)
        console.log(hex(target.s0) + hex(target.s1))
      })`
  })
  const node = (...args) => execFileSync(process.execPath, ['--snapshot-blob', 'ids.blob', ...args],
    { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  node('--build-snapshot', 'entry.js')
  const one = node()
  const other = node()
  t.match(one, /^[0-9a-f]{16}\n$/)
  t.not(one, other)
})

test('hex writes a word as eight lowercase digits, negative or not', async (t) => {
  t.equal(ids.hex(0), '00000000')
  t.equal(ids.hex(1), '00000001')
  t.equal(ids.hex(-1), 'ffffffff')
  t.equal(ids.hex(0x0af7651f), '0af7651f')
  t.equal(ids.hex(0xdeadbeef | 0), 'deadbeef')
})
