'use strict'

// Jest runs the files that took longest first; here one has to come after another.

const { default: Sequencer } = require('@jest/test-sequencer')

module.exports = class ByName extends Sequencer {
  sort (tests) {
    return [...tests].sort((a, b) => a.path.localeCompare(b.path))
  }
}
