'use strict'

// One of several services, in a separate process: node fleet.js <name> <the next services' origins as JSON> prints its origin, and exits
// when its standard input ends.

const http = require('node:http')
const Fastify = require('fastify')
const lightTrace = require('../..')

const [name, next] = process.argv.slice(2)
const { gateway, stock } = JSON.parse(next)

async function main () {
  const app = Fastify({ forceCloseConnections: true })
  await app.register(lightTrace, { serviceName: name })
  if (gateway !== undefined) {
    app.get('/orders/:id', async ({ params }) => {
      const viaGateway = await (await fetch(`${gateway}/items/${params.id}`)).json()
      const direct = await new Promise((resolve, reject) => {
        http.get(`${stock}/items/${params.id}`, (response) => { response.resume().on('end', () => resolve(response.statusCode)) }).on('error', reject)
      })
      return { viaGateway, direct }
    })
  } else if (stock !== undefined) {
    await app.register(require('@fastify/reply-from'), { base: stock })
    app.get('/items/:id', (request, reply) => reply.from(request.url))
  } else {
    app.get('/items/:id', async ({ params }) => ({ id: params.id }))
  }
  console.log(await app.listen({ port: 0, host: '127.0.0.1' }))
  process.stdin.resume().on('end', () => app.close())
}

main()
