'use strict'

// The service that customers call. It calls the other service with fetch, which passes the trace on automatically.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

const STOCK_URL = process.env.STOCK_URL ?? 'http://localhost:3001'

async function main () {
  const app = Fastify({ logger: true })
  await app.register(lightTrace, {
    serviceName: 'shop',
    trustIncoming: false, // strangers may call it, so their traces are not continued
    outbound: { propagateTo: (url) => url.startsWith(STOCK_URL) } // the hosts that may see our trace headers
  })
  app.get('/orders/:item', async (request) => {
    const response = await fetch(`${STOCK_URL}/stock/${encodeURIComponent(request.params.item)}`)
    if (!response.ok) throw new Error(`the stock answered ${response.status}`)
    const { left } = await response.json()
    request.trace.span.setAttribute('stock.left', left)
    return { ordered: left > 0 }
  })
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())
  await app.listen({ port: process.env.PORT ?? 3000 })
}

main()
