'use strict'

const { createHook } = require('node:async_hooks')
const { test } = require('tap')

test('loading the library leaves nothing open that test runners report', async (t) => {
  const open = new Map()
  const hook = createHook({
    init (id, type) { if (type.startsWith('light-trace')) open.set(id, type) },
    destroy (id) { open.delete(id) }
  }).enable()
  require('../..')
  await new Promise((resolve) => setImmediate(resolve))
  hook.disable()
  t.same([...open.values()], [])
})
