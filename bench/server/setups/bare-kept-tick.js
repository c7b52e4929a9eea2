'use strict'

// Fastify alone, with the record of nextTick that lib/runtime/timers.js keeps alive. Without it, the cost of a request depends on when
// V8 last collected garbage.

const bare = require('./bare')
const { retainTickRecord } = require('../../../lib/runtime/timers')

module.exports = (options) => {
  retainTickRecord()
  return bare(options)
}
