'use strict'

// The floor in a process with what lib/context/kept-tick.js does for it.

const floor = require('./als-floor')
const { keepTick } = require('../../../lib/context/kept-tick')

module.exports = () => {
  keepTick()
  return floor()
}
