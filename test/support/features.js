'use strict'

const { existsSync } = require('node:fs')
const { join } = require('node:path')
const { FEATURES } = require('../../lib/features')

const PARTS = { ...FEATURES, ...existsSync(join(__dirname, '../../viewer')) && { viewer: true } }

/** Returns the reason to skip a test if scripts/without.js has removed the feature that it needs, else false. */
function without (name) { return !(name in PARTS) && `without ${name}` }

module.exports = { without }
