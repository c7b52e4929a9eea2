'use strict'

// Both in one trace: the SDK makes and sends the spans, light-trace gives the SERVER span its name and attributes.
// instrumentation-undici traces `fetch`, as light-trace would: one is enough.

require('./node-sdk.cjs')
const { register, inOneTrace } = require('./light-trace-in-code.cjs')
register(inOneTrace)
