'use strict'

const { test } = require('tap')
const { thresholdOf, randomnessOf, withThreshold, withoutThreshold, thresholdText } = require('../../lib/context/tracestate')
const { cleanTracestate } = require('../../lib/context/tracestate')

test('a threshold is read only where it is valid', async (t) => {
  for (const [tracestate, threshold] of [
    ['ot=th:8', '8'], ['ot=th:0', '0'], ['ot=th:fd70a3d70a3d71', 'fd70a3d70a3d71'],
    ['ot=rv:6e6d1a75832a2f;th:c', 'c'], ['a=1 , ot=th:c;x:y,b=2', 'c'], ['ot=;;th:8', '8'],
    ['', ''], ['ot=th:', ''], ['ot=th:G', ''], ['ot=th:FD', ''], ['ot=th:fd70a3d70a3d711', ''], ['ot=th:-1', ''],
    ['ot=xth:8', ''], ['ot=rv:th:8', ''], ['foot=th:8', ''], ['a=ot=th:8', ''], ['ot@v=th:8', ''], ['ot=th', '']
  ]) t.equal(thresholdOf(tracestate), threshold, tracestate)
})

test('randomness is exactly 14 digits', async (t) => {
  t.equal(randomnessOf('ot=th:8;rv:6e6d1a75832a2f'), '6e6d1a75832a2f')
  t.equal(randomnessOf('vendor=1,ot=rv:00000000000000'), '00000000000000')
  for (const rv of ['6e6d1a75832a2', '6e6d1a75832a2ff', '6E6D1A75832A2F', '', 'zzzzzzzzzzzzzz']) t.equal(randomnessOf(`ot=rv:${rv}`), '')
  t.equal(randomnessOf(''), '')
})

test('a threshold is written first, and keeps the member\'s other values', async (t) => {
  for (const [tracestate, written] of [
    ['', 'ot=th:c'],
    ['ot=th:8', 'ot=th:c'],
    ['ot=rv:6e6d1a75832a2f', 'ot=th:c;rv:6e6d1a75832a2f'],
    ['ot=rv:6e6d1a75832a2f;th:8;x:y', 'ot=th:c;rv:6e6d1a75832a2f;x:y'],
    ['a=1,ot=th:8,b=2', 'ot=th:c,a=1,b=2'],
    ['a=1', 'ot=th:c,a=1'],
    ['ot=th:nonsense', 'ot=th:c'],
    ['ot=x:1 ;th:0,a=1', 'ot=th:c;x:1,a=1'],
    ['foot=th:8', 'ot=th:c,foot=th:8']
  ]) t.equal(withThreshold(tracestate, 'c'), written, tracestate)
})

test('the output is valid whatever the input', async (t) => {
  const long = `ot=th:8;${'x'.repeat(248)}` // longer than 256 characters with 14 more digits
  const full = Array.from({ length: 32 }, (_, i) => `k${i}=${i}`).join(',')
  for (const tracestate of [long, full, `ot=${'y'.repeat(256)}`, 'a=1,,ot=;;;']) {
    const written = withThreshold(tracestate, 'fd70a3d70a3d71')
    t.equal(cleanTracestate(written), written)
    t.equal(thresholdOf(written), 'fd70a3d70a3d71')
  }
  t.equal(withThreshold(full, '8').split(',').length, 32, 'the last member is dropped')
})

test('without a threshold the rest is kept', async (t) => {
  for (const [tracestate, left] of [
    ['', ''], ['ot=th:8', ''], ['a=1,ot=th:8,b=2', 'a=1,b=2'], ['ot=th:8;rv:6e6d1a75832a2f', 'ot=rv:6e6d1a75832a2f'],
    ['ot=rv:6e6d1a75832a2f', 'ot=rv:6e6d1a75832a2f'], ['a=1 , b=2', 'a=1 , b=2'], ['ot=th:nonsense', '']
  ]) t.equal(withoutThreshold(tracestate), left, tracestate)
})

test('a threshold is written without its trailing zeros', async (t) => {
  for (const [high, low, text] of [[0, 0, '0'], [0x800000, 0, '8'], [0xc00000, 0, 'c'], [0xfd70a4, 0, 'fd70a4'], [0xe66666, 0x66666666, 'e6666666666666'], [0, 1, '00000000000001'], [0x000001, 0, '000001'], [0xffffff, 0xffffffff, 'ffffffffffffff']]) {
    t.equal(thresholdText(high, low), text)
  }
})
