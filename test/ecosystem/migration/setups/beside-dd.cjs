'use strict'

// dd-trace and light-trace for a day: each has its own SERVER spans, and dd-trace has the calls.

require('dd-trace').init()
require('./light-trace-in-code.cjs')({ exporter: { url: process.env.LIGHT_TRACE_URL }, outbound: { http: false, undici: false } })
