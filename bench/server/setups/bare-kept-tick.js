'use strict'

// Fastify alone, and what lib/context/kept-tick.js does for the process: without it, what a request costs depends on when
// V8 last collected its garbage.

const { keepTick } = require('../../../lib/context/kept-tick')

module.exports = () => {
  keepTick()
  return {}
}
