'use strict'

// Contexts that derive from ours behave like the API's: each keeps the values with which it was made, whatever is derived from it later.

const { test } = require('tap')
const { ROOT_CONTEXT, createContextKey } = require('@opentelemetry/api')
const { RequestContext, EMPTY_CONTEXT } = require('../../lib/context/request-context')
const { SPAN_KEY, REQUEST_KEY, SUPPRESS_KEY, BAGGAGE_KEY } = require('../../lib/context/trace-context')
const { randomFrom } = require('../support/random')

const OWN = [SPAN_KEY, REQUEST_KEY, SUPPRESS_KEY, BAGGAGE_KEY]
const KEYS = [...OWN, ...['a', 'b', 'c', 'd'].map((name) => createContextKey(name))]

/** The same values in a context of the API. */
const ofTheApi = (context) => KEYS.reduce((made, key) => made.setValue(key, context.getValue(key)), ROOT_CONTEXT)

function derivedFrom (root, random) {
  const made = [[root, ofTheApi(root)]]
  for (let i = 0; i < 300; i++) {
    const [ours, theirs] = made[Math.floor(random() * made.length)]
    const key = KEYS[Math.floor(random() * KEYS.length)]
    const value = random() < 0.2 ? undefined : { i }
    made.push(random() < 0.3 ? [ours.deleteValue(key), theirs.deleteValue(key)] : [ours.setValue(key, value), theirs.setValue(key, value)])
  }
  return made
}

const request = (base, isSuppressed, baggage) => new RequestContext(null, { name: 'of the request' }, base, isSuppressed, undefined, baggage)
const withValues = EMPTY_CONTEXT.setValue(KEYS[4], 1).setValue(KEYS[5], 2)
const roots = {
  'no request': EMPTY_CONTEXT,
  'a request': request(null, false, 'a=1'),
  'a request that is not traced': request(null, true, null),
  'a request on another context': request(withValues, false, null),
  'a request on a context of the API': request(ofTheApi(withValues), true, 'a=1')
}

for (const [name, root] of Object.entries(roots)) {
  test(`a context keeps its values, whatever is set and deleted: ${name}`, async (t) => {
    for (let seed = 1; seed <= 10; seed++) {
      const made = derivedFrom(root, randomFrom(seed))
      const wrong = made.filter(([ours, theirs]) => KEYS.some((key) => ours.getValue(key) !== theirs.getValue(key)))
      t.equal(wrong.length, 0, `seed ${seed}`)
    }
  })

  test(`a request inside inherits all values but its own: ${name}`, async (t) => {
    for (const [ours, theirs] of derivedFrom(root, randomFrom(11))) {
      const inner = request(ours, false, null)
      const others = KEYS.filter((key) => key !== SPAN_KEY && key !== REQUEST_KEY)
      if (others.some((key) => inner.getValue(key) !== theirs.getValue(key))) t.fail('another value')
      if (inner.getValue(REQUEST_KEY) !== inner || inner.getValue(SPAN_KEY) !== inner.span) t.fail('not its own')
    }
    t.pass()
  })
}

test('a context can have ten thousand keys and set one of them again', async (t) => {
  const keys = Array.from({ length: 10_000 }, (_, i) => Symbol(i))
  let context = EMPTY_CONTEXT
  for (const key of keys) context = context.setValue(key, key)
  const other = context.setValue(keys[5], 'other').deleteValue(keys[6])
  t.equal(other.getValue(keys[5]), 'other')
  t.equal(other.getValue(keys[6]), undefined)
  t.equal(other.getValue(keys[0]), keys[0])
  t.equal(other.getValue(keys.at(-1)), keys.at(-1))
  t.equal(context.getValue(keys[5]), keys[5])
  t.equal(request(other.setValue(REQUEST_KEY, {}), false, null).getValue(keys[7]), keys[7])
})
