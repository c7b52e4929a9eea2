'use strict'

// A shop that calls its stock service once for each item of an order. A budget finds this mistake.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

async function buildApp ({ stock, ...traceOptions }) {
  const app = Fastify()
  await app.register(lightTrace, traceOptions)
  app.get('/orders/:id', async () => {
    const items = []
    for (const item of ['tea', 'cup', 'pot']) items.push(await (await fetch(`${stock}/items/${item}`)).json())
    return items
  })
  app.get('/stock', async () => (await fetch(`${stock}/items`)).json())
  return app
}

module.exports = { buildApp }
