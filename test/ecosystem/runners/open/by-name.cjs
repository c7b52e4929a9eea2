'use strict'

// By default, Jest runs the slowest files first. This test needs a fixed order.

const { default: Sequencer } = require('@jest/test-sequencer')

module.exports = class ByName extends Sequencer {
  sort (tests) {
    return [...tests].sort((a, b) => a.path.localeCompare(b.path))
  }
}
