'use strict'

// An app that does not mention light-trace, which is preloaded.

const fastify = require('fastify')

const app = fastify()
app.get('/', async () => 'ok')
app.listen({ port: 0, host: '127.0.0.1' }).then(async (origin) => {
  await (await fetch(origin)).text()
  await app.close()
  process.exit(0)
})
