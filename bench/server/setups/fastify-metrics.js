'use strict'

// fastify-metrics, registered as in its README. The process keeps a record of nextTick, as light-trace's does.

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
    // Does not use inject: its requests have other classes, which V8 would have to learn as well.
    async flush (app) {
      const { values } = await app.metrics.client.register.getSingleMetric('http_request_duration_seconds').get()
      assert.ok(values.some(({ metricName, labels, value }) => metricName.endsWith('_count') && labels.route === '/' && value > 0))
    }
  }
}
