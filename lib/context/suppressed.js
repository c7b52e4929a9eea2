'use strict'

// The context in which nothing is traced: our own traffic to the collector runs in it.

const { SUPPRESS_KEY } = require('./keys')
const { DerivedContext } = require('./request-context')

const EMPTY_CONTEXT = {
  getValue () { return undefined },
  setValue (key, value) { return new DerivedContext(EMPTY_CONTEXT, key, value) },
  deleteValue () { return EMPTY_CONTEXT }
}

const SUPPRESSED = EMPTY_CONTEXT.setValue(SUPPRESS_KEY, true)

module.exports = { SUPPRESSED, EMPTY_CONTEXT }
