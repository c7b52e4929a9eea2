'use strict'

// dd-trace and light-trace for a day: each has its own SERVER spans, and dd-trace has the calls.

require('dd-trace').init()
const { register, sideBySide: { outbound } } = require('./light-trace-in-code.cjs')
register({ exporter: { url: process.env.LIGHT_TRACE_URL }, outbound })
