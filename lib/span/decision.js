'use strict'

// What a sampler answers, in the numbers of the OpenTelemetry SDK.

module.exports = {
  DROP: 0,
  RECORD: 1,
  RECORD_AND_SAMPLE: 2
}
