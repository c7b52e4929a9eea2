'use strict'

// "Run both for a while": the SDK continues as before. light-trace creates its own SERVER spans and sends them elsewhere. The SDK traces
// outbound calls, because its span is the active one. A CLIENT span of light-trace would have a parent that its collector never receives.

require('./node-sdk.cjs')
const { register, sideBySide } = require('./light-trace-in-code.cjs')
register({ ...sideBySide, exporter: { url: process.env.LIGHT_TRACE_URL } })
