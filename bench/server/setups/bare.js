'use strict'

const loggerOptions = require('./logger')

// Fastify alone, or with its logger where `options.logger` says so. `readsStack`: with a hook that reads the stack of each error,
// which V8 makes a text of when it is first read. What the text costs depends on the ten functions in it, so there is a hook before
// the handler too, as there is where an application is traced.
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
