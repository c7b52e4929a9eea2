'use strict'

// The effect of this code only shows in the bench: the row "one record of process.nextTick kept".

const { test } = require('tap')
const asyncHooks = require('node:async_hooks')
const { gc } = require('../support/bytes-in-use')

// Loads a fresh copy of the module, and records what it is given.
function load (t) {
  const seen = []
  const { executionAsyncResource } = asyncHooks
  asyncHooks.executionAsyncResource = () => {
    const resource = executionAsyncResource()
    seen.push(new WeakRef(resource))
    return resource
  }
  t.teardown(() => { asyncHooks.executionAsyncResource = executionAsyncResource })
  const path = require.resolve('../../lib/runtime/timers')
  delete require.cache[path]
  return { ...require(path), seen }
}

async function collectGarbage () {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    gc()
  }
}

test('one record of nextTick survives garbage collections, however often it is requested', async (t) => {
  const { retainTickRecord, seen } = load(t)
  retainTickRecord()
  retainTickRecord()
  await collectGarbage()
  t.equal(seen.length, 1)
  t.equal(typeof seen[0].deref()?.callback, 'function')
})

test('the context of the request for it does not survive', async (t) => {
  const { retainTickRecord, seen } = load(t)
  const storage = new asyncHooks.AsyncLocalStorage()
  const store = (() => {
    const request = { isRequest: true }
    storage.run(request, retainTickRecord)
    return new WeakRef(request)
  })()
  await collectGarbage()
  t.ok(seen[0].deref())
  t.equal(store.deref(), undefined)
})

test('a record that is not Node\'s is not touched', async (t) => {
  const { retainTickRecord, seen } = load(t)
  const { nextTick } = process
  const theirs = { [Symbol('state')]: {} }
  process.nextTick = (callback) => { // like fake timers
    const resource = new asyncHooks.AsyncResource('theirs')
    Object.assign(resource, theirs)
    setImmediate(() => resource.runInAsyncScope(callback))
  }
  t.teardown(() => { process.nextTick = nextTick })
  retainTickRecord()
  process.nextTick = nextTick
  await collectGarbage()
  t.equal(seen.length, 1)
  t.equal(seen[0].deref(), undefined)
})
