'use strict'

// Express 5, bare or with NodeSDK and the instrumentations that its users take.

module.exports = async ({ traced }) => {
  const tracing = traced ? await require('../../server/setups/node-sdk')({ fastify: false, express: true }) : {}
  const express = require('express')
  const versionsOf = require('../../server/versions')
  return {
    ...tracing,
    versions: () => ({ ...tracing.versions?.(), ...versionsOf(__filename, ['express']) }),
    async start () {
      const app = express()
      app.get('/', (request, response) => { response.json({ hello: 'world' }) })
      app.get('/text', (request, response) => { response.type('text/plain').send('hello world') })
      app.post('/echo', express.json(), (request, response) => { response.json(request.body) })
      const server = await new Promise((resolve) => {
        const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
      })
      return { port: server.address().port }
    }
  }
}
