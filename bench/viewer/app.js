'use strict'

// The app whose requests are looked for on the page: nothing of light-trace in it, `npx light-trace` brings that.

const app = require('fastify')()

app.get('/seen/:number', async (request) => ({ number: request.params.number }))

app.listen({ port: Number(process.env.PORT ?? 0), host: '127.0.0.1' }).then((address) => console.log(`listens ${address}`))
