'use strict'

// The main file of the process, as an application's is: from here the fixture's own packages are found, because
// scripts/apps.js puts this folder among them.

const { join } = require('node:path')

require(join(process.env.INTEROP_TESTS, 'fixture'))
