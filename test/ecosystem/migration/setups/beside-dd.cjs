'use strict'

// dd-trace and light-trace together for a while. Each creates its own SERVER spans, and dd-trace traces the outbound calls.

require('dd-trace').init()
const { register, sideBySide: { outbound } } = require('./light-trace-in-code.cjs')
register({ exporter: { url: process.env.LIGHT_TRACE_URL }, outbound })
