'use strict'

// Your own spans inside a request. They nest, end when their function or its promise ends, and record what it throws.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

const app = Fastify()
app.register(lightTrace, { exporter: 'console' })

app.get('/orders/:id', async (request) => {
  return request.trace.withSpan('load order', async (span) => {
    span.setAttribute('order.id', request.params.id)
    const order = await request.trace.withSpan('query', { attributes: { 'app.table': 'orders' } }, query)
    span.addEvent('order loaded', { lines: order.lines })
    return order
  })
})

app.get('/pay', async (request) => {
  // The error is recorded on the child span and rethrown. The request's own span records only its response.
  await request.trace.withSpan('charge card', async () => { throw new RangeError('over the limit') }).catch(() => {})
  return 'not paid'
})

async function query () {
  return { id: 7, lines: 3 }
}

app.inject('/orders/7').then(() => app.inject('/pay')).then(() => app.close())

// Prints:
// SERVER GET /orders/:id … ms trace_id=…
//   INTERNAL load order … ms
//     INTERNAL query … ms
// SERVER GET /pay … ms trace_id=…
//   INTERNAL charge card ERROR error.type=RangeError … ms
