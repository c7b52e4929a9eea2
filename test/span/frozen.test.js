'use strict'

// Keys that are also names on a frozen Object.prototype (--frozen-intrinsics, Object.freeze).

const { test } = require('tap')
const { runInChild } = require('../support/child')

test('with frozen prototypes, any name can be a key of the store or an attribute', async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const seen = []
    const app = Fastify()
    await app.register(lightTrace, { registerGlobals: false, exporter: 'none' })
    app.get('/', async ({ trace }) => {
      for (const key of ['constructor', 'toString', '__proto__', 'plain']) {
        trace.set(key, 1)
        trace.set(key, 2)
        trace.span.setAttribute(key, 'a')
        trace.span.setAttributes({ [key]: 'b' })
      }
      seen.push({ ...trace.span.attributes })
      return ['constructor', 'toString', '__proto__', 'plain', 'valueOf'].map((key) => trace.get(key) ?? null)
    })
    await app.ready()
    Object.freeze(Object.prototype)
    const { payload } = await app.inject('/')
    say([payload, seen.map((attributes) => ['constructor', 'toString', '__proto__', 'plain'].map((key) => Object.hasOwn(attributes, key) ? attributes[key] : 'none'))])
    process.exit()
  })
  t.same((await child.exit).said, [['[2,2,2,2,null]', [['b', 'b', 'b', 'b']]]])
})
