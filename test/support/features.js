'use strict'

const { FEATURES } = require('../../lib/features')

/** Returns the reason to skip a test if scripts/without.js has removed the feature that it needs, else false. */
function without (name) { return !(name in FEATURES) && `without ${name}` }

module.exports = { without }
