'use strict'

module.exports = require('neostandard')({ ignores: ['.cache/**', '.matrix/**', '.tap/**', 'bench/node_modules/**', 'test/fixtures/**/node_modules/**'] })
