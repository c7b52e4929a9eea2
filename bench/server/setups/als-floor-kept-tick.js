'use strict'

// The floor in a process with what lib/runtime/timers.js does for it.

const floor = require('./als-floor')
const { retainTickRecord } = require('../../../lib/runtime/timers')

module.exports = () => {
  retainTickRecord()
  return floor()
}
