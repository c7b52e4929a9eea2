'use strict'

// The OTLP enums by number. An unspecified kind counts as INTERNAL, as in the API.
module.exports = {
  KINDS: ['INTERNAL', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'],
  STATUSES: ['UNSET', 'OK', 'ERROR'],
  KIND_SERVER: 2,
  KIND_CLIENT: 3,
  KIND_PRODUCER: 4,
  KIND_CONSUMER: 5,
  STATUS_ERROR: 2
}
