'use strict'

// The context in which nothing is traced: our own traffic to the collector runs in it.

const { SUPPRESS_KEY } = require('./keys')
const { DerivedContext } = require('./request-context')

const NOTHING = {
  getValue () { return undefined },
  setValue (key, value) { return new DerivedContext(NOTHING, key, value) },
  deleteValue () { return NOTHING }
}

const SUPPRESSED = NOTHING.setValue(SUPPRESS_KEY, true)

module.exports = { SUPPRESSED, NOTHING }
