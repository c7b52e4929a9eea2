'use strict'

// The floor: the cost of any tool that makes a request's context follow it.

const assert = require('node:assert')
const { AsyncLocalStorage } = require('node:async_hooks')

module.exports = () => {
  const storage = new AsyncLocalStorage()
  return {
    async register (app) {
      app.addHook('onRequest', (request, reply, done) => { storage.run({ request }, done) })
      app.get('/prove', async () => ({ context: storage.getStore()?.request !== undefined }))
    },
    async prove (app) {
      assert.deepStrictEqual((await app.inject('/prove')).json(), { context: true })
    }
  }
}
