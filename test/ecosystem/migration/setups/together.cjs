'use strict'

// Both in one trace: the SDK creates and sends the spans, and light-trace gives the SERVER span its name and attributes.
// instrumentation-undici already traces `fetch`, so light-trace does not.

require('./node-sdk.cjs')
const { register, inOneTrace } = require('./light-trace-in-code.cjs')
register(inOneTrace)
