'use strict'

// More tests of the parsers of caller input than test/faults/fuzz.test.js has for every parser: values that are not text, time that is
// counted instead of measured, and a service that survives all of it.

const { test } = require('tap')
const { randomFrom, mutateText } = require('../support/fuzz')
const { checkTraceparent, checkTracestate, checkBaggage } = require('../support/w3c-reader')
const { tracedApp } = require('../support/traced-app')
const { parseTraceparent } = require('../../lib/context/traceparent')
const { cleanTracestate } = require('../../lib/context/tracestate')
const { parseBaggage, serializeBaggage } = require('../../lib/context/baggage')

const SEED = 20261121
const GOOD = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

// S13
test('a header object that was filled by hand may contain anything', async (t) => {
  const values = [undefined, null, true, 0, NaN, 10n, Symbol('x'), [], ['a=1'], [GOOD], {}, Object.create(null), () => GOOD,
    Buffer.from(GOOD), Object(GOOD), { toString () { throw new Error('asked for text') } }, new Proxy({}, { get () { throw new Error('read') } })]
  for (const value of values) {
    checkTraceparent(value)
    checkTracestate(value)
    t.same(parseBaggage(value).getAllEntries(), [], typeof value)
  }
})

// S09
test('reading a traceparent takes the same time whatever its length', async (t) => {
  const later = `cc${GOOD.slice(2)}-`
  for (let length = 64; length <= 65536; length *= 2) {
    for (const char of ['a', '0', '-', ',', '=', '\xff']) {
      t.ok(charsRead(() => parseTraceparent(char.repeat(length), {})) <= 70, `${length} times ${char.charCodeAt(0)}`)
      t.ok(charsRead(() => parseTraceparent(later + char.repeat(length), {})) <= 70, `a later version and ${length} times ${char.charCodeAt(0)}`)
    }
    for (const space of [' ', '\t']) {
      t.ok(charsRead(() => parseTraceparent(space.repeat(length), {})) <= length + 70, 'whitespace is read once')
    }
  }
})

// S10
test('reading a tracestate takes time in proportion to its length, and none beyond 8 KiB', async (t) => {
  for (let length = 64; length <= 65536; length *= 2) {
    for (const piece of ['a', ',', ' ', '\t', '=', 'a=b ', 'a=b,', 'a= \t', ' ,', 'a=b \t,', ', \t', '\t,a= b ']) {
      const text = piece.repeat(length / piece.length)
      const most = text.length > 8192 ? 0 : 4 * text.length + 20
      const read = charsRead(() => cleanTracestate(text))
      t.ok(read <= most, `${text.length} chars: ${read} read, at most ${most}`)
    }
  }
})

// The tests above and test/faults/linear-work.test.js count that the work is linear.
test('texts of a megabyte are parsed without delay', async (t) => {
  for (const piece of ['a', '%', '%25', ',', ';', '=', ' ', '\t', 'a=b,', 'a=%zz,', 'a=b;', '\xe9', ' ,', '\t;']) {
    const text = piece.repeat(2 ** 20 / piece.length)
    t.equal(parseTraceparent(text, {}), false)
    t.equal(cleanTracestate(text), '')
    checkBaggage(text)
    t.ok(serializeBaggage(parseBaggage('').setEntry('k', { value: text.slice(0, 4096), metadata: text.slice(0, 4096) })).length <= 8192)
  }
})

test('requests with hostile headers are served, each with its span and valid outgoing headers', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    fastify: { trustProxy: true },
    routes: (app) => { app.get('/*', async ({ trace }) => trace.inject({})) }
  })
  const random = randomFrom(SEED)
  const pick = (list) => list[Math.floor(random() * list.length)]
  const seeds = [GOOD, 'foo=1,bar=2', 'a=1,b=%20;p', '127.0.0.1', 'example.com:80', 'https', 'for=1.2.3.4;proto=https']
  const names = ['traceparent', 'tracestate', 'baggage', 'host', 'user-agent', 'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto']
  for (let i = 0; i < 500; i++) {
    const headers = { traceparent: GOOD }
    for (const name of names) if (random() < 0.4) headers[name] = mutateText(pick(seeds), random)
    const response = await app.inject({ url: '/x', headers })
    if (response.statusCode !== 200) t.equal(response.statusCode, 200, JSON.stringify(headers))
    const { traceparent, ...others } = response.json()
    if (!/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]$/.test(traceparent)) t.fail(`${traceparent} for ${JSON.stringify(headers)}`)
    for (const value of Object.values(others)) if (!/^[\t -~]+$/.test(value)) t.fail(`${JSON.stringify(value)} for ${JSON.stringify(headers)}`)
  }
  t.ok((await collector.spans()).length > 200)
  t.equal(app.lightTrace.stats().spans.ended, 500)
})

/** Returns how many characters `fn` reads one by one. */
function charsRead (fn) {
  const { charCodeAt } = String.prototype
  let count = 0
  // eslint-disable-next-line no-extend-native
  const replace = (method) => Object.defineProperty(String.prototype, 'charCodeAt', { value: method, writable: true, configurable: true })
  replace(function (at) {
    count++
    return Reflect.apply(charCodeAt, this, [at])
  })
  try {
    fn()
  } finally {
    replace(charCodeAt)
  }
  return count
}
