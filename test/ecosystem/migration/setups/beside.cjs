'use strict'

// Run both for a while: the SDK goes on as before. light-trace makes SERVER spans of its own beside it and sends them elsewhere. Calls are
// left to the SDK, whose span is the active one: a CLIENT span of light-trace's would have a parent that its collector never gets.

require('./node-sdk.cjs')
const { register, sideBySide } = require('./light-trace-in-code.cjs')
register({ ...sideBySide, exporter: { url: process.env.LIGHT_TRACE_URL } })
