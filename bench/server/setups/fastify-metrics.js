'use strict'

// fastify-metrics as its README registers it. In a process that keeps a record of nextTick, as light-trace's do.

const assert = require('node:assert')
const bareKeptTick = require('./bare-kept-tick')

module.exports = (options) => {
  const fastifyMetrics = require('fastify-metrics')
  const versionsOf = require('../versions')
  return {
    ...bareKeptTick(options),
    versions: () => versionsOf(__filename, ['fastify-metrics']),
    async register (app) {
      await app.register(fastifyMetrics.default ?? fastifyMetrics, { endpoint: '/metrics' })
    },
    async prove (app) {
      await app.inject('/')
      const { body } = await app.inject('/metrics')
      assert.match(body, /http_request_duration_seconds_count\{[^}]*route="\/"[^}]*\} 1/)
    }
  }
}
