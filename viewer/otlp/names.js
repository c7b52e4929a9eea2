'use strict'

// The OTLP enums by number. An unspecified kind counts as INTERNAL, as in the API. Each level has four severity numbers, starting at 1.
module.exports = {
  KINDS: ['INTERNAL', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'],
  STATUSES: ['UNSET', 'OK', 'ERROR'],
  LEVELS: ['trace', 'debug', 'info', 'warn', 'error', 'fatal'],
  KIND_SERVER: 2,
  KIND_CLIENT: 3,
  KIND_PRODUCER: 4,
  KIND_CONSUMER: 5,
  STATUS_ERROR: 2
}
