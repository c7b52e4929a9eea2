'use strict'

const fp = require('fastify-plugin')
const { current } = require('light-trace')

// Its hook runs in the request's context because light-trace is loaded before it.
module.exports = fp(async (app, options) => {
  app.addHook('onRequest', async () => { current().set('tier', options.tier) })
}, { name: 'tenant', dependencies: ['light-trace'] })
