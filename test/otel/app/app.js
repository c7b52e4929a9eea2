'use strict'

// node app.js <name> …: one of test/otel/sdk-apps, with the fixture's packages and in a process of its own.

const { join } = require('node:path')

require(join(process.env.INTEROP_TESTS, 'sdk-apps', process.argv[2]))
