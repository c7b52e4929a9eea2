'use strict'

// dd-trace, which also creates the spans of OpenTelemetry's API.

const tracer = require('dd-trace').init()
new tracer.TracerProvider().register()
