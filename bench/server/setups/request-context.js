'use strict'

const assert = require('node:assert')

module.exports = () => {
  const { fastifyRequestContext, requestContext } = require('@fastify/request-context')
  return {
    versions: () => ({ '@fastify/request-context': require('@fastify/request-context/package.json').version }),
    async register (app) {
      await app.register(fastifyRequestContext, { defaultStoreValues: { user: { id: 'system' } } })
      app.get('/prove', async () => ({ user: requestContext.get('user').id }))
    },
    async prove (app) {
      assert.deepStrictEqual((await app.inject('/prove')).json(), { user: 'system' })
    }
  }
}
