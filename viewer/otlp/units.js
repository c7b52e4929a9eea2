'use strict'

// Milliseconds of OpenTelemetry's units of time. A metric's unit is any text, so that the table has no prototype.
const MS_IN = { __proto__: null, ns: 1e-6, us: 1e-3, ms: 1, s: 1000, min: 60_000, h: 3_600_000 }

module.exports = { MS_IN }
