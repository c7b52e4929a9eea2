'use strict'

const loggerOptions = require('./logger')

// Fastify alone, with its logger if `options.logger` is set. `readsStack` adds a hook that reads the stack of each error; V8 formats the
// stack on the first read. Formatting costs depend on the ten functions in the stack, so there is a hook before the handler too, as in a
// traced application.
module.exports = ({ logger, readsStack = false }) => ({
  fastify: logger ? { logger: loggerOptions(logger) } : {},
  async register (app) {
    if (!readsStack) return
    app.addHook('onRequest', (request, reply, done) => done())
    app.addHook('onError', (request, reply, error, done) => {
      if (error.stack !== '') done()
    })
  }
})
