/* global test */
'use strict'

// An application that is never closed. When this file ends, Jest clears its globals and everything that they refer to.

const fastify = require('fastify')
const lightTrace = require('light-trace')

test('an application stays open', async () => {
  const app = fastify()
  await app.register(lightTrace, { exporter: 'none' })
  await app.ready()
})
