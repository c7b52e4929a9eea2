'use strict'

module.exports = async function (app) {
  app.get('/', async (request) => ({ tier: request.trace.get('tier'), ip: request.ip, traceId: request.trace.traceId }))
}
