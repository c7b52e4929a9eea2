'use strict'

// npm run test:fleet [-- test files]
//
// Builds an OpenTelemetry Collector, if there is none yet (minutes), and runs test/fleet/, which starts two tiers of it by the files
// of examples/fleet.

const { installOtelcol } = require('./collectors/install')
const { withServers, runTests } = require('./with-servers')

withServers(async () => runTests({ folder: 'test/fleet', env: { COLLECTOR_OTELCOL: await installOtelcol() }, timeoutS: 240, deadlineMs: 300_000 }))
