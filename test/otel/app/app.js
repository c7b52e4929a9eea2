'use strict'

// node app.js <name> …: runs one of test/otel/sdk-apps with the fixture's packages, in a separate process.

const { join } = require('node:path')

require(join(process.env.INTEROP_TESTS, 'sdk-apps', process.argv[2]))
