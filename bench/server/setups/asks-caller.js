'use strict'

// Fastify and a hook that reads what a span says of its caller: what a logger of requests reads too. Node asks the system
// for the addresses of a connection when they are read first, and Fastify reads the forwarded headers each time.

const bareKeptTick = require('./bare-kept-tick')

const read = { units: 0 } // and nothing is kept: when V8 collects garbage stays as it is

module.exports = (options) => ({
  ...bareKeptTick(options),
  async register (app) {
    app.addHook('onRequest', (request, reply, done) => {
      const { ip, host, protocol, socket } = request
      read.units += ip.length + host.length + protocol.length + socket.remoteAddress.length + socket.remotePort
      done()
    })
  }
})
