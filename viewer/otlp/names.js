'use strict'

// The enums of OTLP, by their numbers. An unspecified kind counts as INTERNAL, as the API has it.
module.exports = {
  KINDS: ['INTERNAL', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'],
  STATUSES: ['UNSET', 'OK', 'ERROR'],
  KIND_SERVER: 2,
  KIND_CLIENT: 3,
  KIND_PRODUCER: 4,
  KIND_CONSUMER: 5,
  STATUS_ERROR: 2
}
