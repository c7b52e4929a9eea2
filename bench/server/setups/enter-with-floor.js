'use strict'

// What no tracer of requests can do without, and nothing else: a hook, a context entered for the rest of the request, a
// record, and a listener that notices the end. In a process that keeps a record of nextTick, as light-trace's do.

const assert = require('node:assert')
const { AsyncLocalStorage } = require('node:async_hooks')
const bareKeptTick = require('./bare-kept-tick')

const kRecord = Symbol('bench.record')

module.exports = (options) => {
  const storage = new AsyncLocalStorage()
  let ended = 0
  return {
    ...bareKeptTick(options),
    async register (app) {
      app.addHook('onRequest', (request, reply, done) => {
        const record = { isOpen: true }
        reply.raw[kRecord] = record
        reply.raw.on('close', onClose)
        storage.enterWith(record)
        done()
      })
      app.get('/prove', async () => ({ context: storage.getStore()?.isOpen === true }))
    },
    async prove (app) {
      assert.deepStrictEqual((await app.inject('/prove')).json(), { context: true })
      await new Promise((resolve) => setImmediate(resolve))
      assert.strictEqual(ended, 1)
    }
  }

  function onClose () {
    this[kRecord].isOpen = false
    ended++
  }
}
