/* global test */
'use strict'

// An application that nobody closes. Jest clears the globals of this file when it is done, with all that hangs on them.

const fastify = require('fastify')
const lightTrace = require('light-trace')

test('an application stays open', async () => {
  const app = fastify()
  await app.register(lightTrace, { exporter: 'none' })
  await app.ready()
})
