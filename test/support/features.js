'use strict'

const { FEATURES } = require('../../lib/features')

/** Why a test is skipped where scripts/without.js has taken out the feature that it needs; false where it is there. */
function without (name) { return !(name in FEATURES) && `without ${name}` }

module.exports = { without }
