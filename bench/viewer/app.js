'use strict'

// The app whose requests the page must show. It does not use light-trace itself: `npx light-trace` adds that.

const app = require('fastify')()

app.get('/seen/:number', async (request) => ({ number: request.params.number }))

app.listen({ port: Number(process.env.PORT ?? 0), host: '127.0.0.1' }).then((address) => console.log(`listens ${address}`))
