'use strict'

// The caller of this program sets OTEL_PROPAGATORS.

const path = require('node:path')
const { api, Fastify, lightTrace } = require(path.join(process.env.FIXTURE, 'kit.js'))

main()

async function main () {
  const app = Fastify()
  await app.register(lightTrace, { exporter: 'none' })
  app.get('/', async (request) => {
    const injected = {}
    api.propagation.inject(api.context.active(), injected)
    return { traceId: request.trace.traceId, headers: request.trace.inject(), injected }
  })
  const response = await app.inject({ url: '/', headers: JSON.parse(process.argv[3]) })
  console.log(response.body)
  await app.close()
}
