'use strict'

// The OTLP enums by number, and the kinds of metrics. An unspecified kind of span counts as INTERNAL, as in the API. Each level has four
// severity numbers, starting at 1.
module.exports = {
  KINDS: ['INTERNAL', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'],
  STATUSES: ['UNSET', 'OK', 'ERROR'],
  LEVELS: ['trace', 'debug', 'info', 'warn', 'error', 'fatal'],
  KIND_SERVER: 2,
  KIND_CLIENT: 3,
  KIND_PRODUCER: 4,
  KIND_CONSUMER: 5,
  STATUS_ERROR: 2,
  METRIC_KINDS: ['gauge', 'counter', 'sum', 'histogram', 'summary'],
  metricKindOf
}

/** A metric's kind as it is listed and chosen: a counter is a sum that cannot fall, and a histogram may have buckets of either kind. */
function metricKindOf ({ kind, monotonic }) {
  return kind === 'sum' && monotonic ? 'counter' : kind.replace('exponential_', '')
}
