'use strict'

// The floor in a process with what lib/runtime/next-tick.js does for it.

const floor = require('./als-floor')
const { retainTickRecord } = require('../../../lib/runtime/next-tick')

module.exports = () => {
  retainTickRecord()
  return floor()
}
