'use strict'

// Fastify alone, and what lib/runtime/timers.js does for the process: without it, what a request costs depends on when
// V8 last collected its garbage.

const bare = require('./bare')
const { retainTickRecord } = require('../../../lib/runtime/timers')

module.exports = (options) => {
  retainTickRecord()
  return bare(options)
}
