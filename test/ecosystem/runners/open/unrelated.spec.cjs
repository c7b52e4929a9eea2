/* global expect, test */
'use strict'

// Runs after open.spec.cjs in the same process, and checks that everything of that file is garbage-collected.

const v8 = require('node:v8')
const vm = require('node:vm')

test('the application of another file is garbage-collected', async () => {
  v8.setFlagsFromString('--expose-gc')
  const gc = vm.runInNewContext('gc')
  for (let i = 0; i < 20; i++) {
    gc()
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(Reflect.ownKeys(globalThis)).not.toContain(Symbol.for('light-trace.globals'))
})
