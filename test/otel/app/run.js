'use strict'

// The main file of the process, like an application's. The fixture's own packages are resolved from here, because scripts/apps.js copies
// this folder next to them.

const { join } = require('node:path')

require(join(process.env.INTEROP_TESTS, 'fixture'))
