'use strict'

// Fastify alone, or with its logger where `options.logger` says so.
module.exports = ({ logger }) => ({
  fastify: logger ? { logger: { level: 'info', file: '/dev/null' } } : {}
})
