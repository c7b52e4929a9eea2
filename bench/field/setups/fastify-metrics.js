'use strict'

// Fastify with fastify-metrics, as its README registers it.

module.exports = () => {
  const fastifyMetrics = require('fastify-metrics')
  return {
    fastify: {},
    versions: () => require('../../server/versions')(__filename, ['fastify-metrics']),
    async register (app) {
      await app.register(fastifyMetrics.default ?? fastifyMetrics, { endpoint: '/metrics' })
    }
  }
}
