'use strict'

// dd-trace, which makes the spans of OpenTelemetry's API too.

const tracer = require('dd-trace').init()
new tracer.TracerProvider().register()
