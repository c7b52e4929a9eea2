'use strict'
module.exports = { parseBaggage: () => undefined, serializeBaggage: () => '' }
