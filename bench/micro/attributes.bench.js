'use strict'

const assert = require('node:assert')
const bench = require('./harness')
const { setAttribute } = require('../../lib/span/attributes')

const KEYS = Array.from({ length: 10 }, (_, i) => `app.attribute.of.twenty${i}`)
const VALUE = 'a value of twenty ch'

function tenAttributes () {
  const list = []
  for (let i = 0; i < KEYS.length; i++) setAttribute(list, KEYS[i], VALUE, 128, 16384)
  return list
}

bench('attributes: ten on one span', {
  check: () => assert.deepStrictEqual(tenAttributes(), KEYS.flatMap((key) => [key, VALUE])),
  run (times) {
    let list
    for (let i = 0; i < times; i++) list = tenAttributes()
    assert.strictEqual(list.length, 20)
  }
})
