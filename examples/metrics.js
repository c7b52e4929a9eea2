'use strict'

// Durations of all requests, sampled or not, and the shop's own counter. Prometheus would scrape /metrics; here the example does.
// Without `exporter: 'none'`, metrics also go to the collector.

const { metrics } = require('@opentelemetry/api')
const Fastify = require('fastify')
const lightTrace = require('light-trace')

async function main () {
  const app = Fastify()
  await app.register(lightTrace, {
    exporter: 'none',
    sampler: 0.01,
    metrics: { path: '/metrics', attributes: (request) => ({ plan: request.query.plan }) }
  })
  // Must come after light-trace, because the API has no proxy for meters.
  const orders = metrics.getMeter('shop').createCounter('orders', { description: 'Orders placed.' })

  app.get('/orders/:id', async (request) => {
    orders.add(1)
    return { id: request.params.id }
  })

  for (const plan of ['free', 'pro', 'pro']) await app.inject({ url: '/orders/7', query: { plan } })
  await app.inject('/nowhere')

  const { body } = await app.inject('/metrics')
  console.log(body.split('\n').filter((line) => /^(?!otel_)\w+_(count|total)\{/.test(line)).join('\n'))
  await app.close()
}

main()

// Prints:
// http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/orders/:id",network_protocol_version="1.1",plan="free",url_scheme="http"} 1
// http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/orders/:id",network_protocol_version="1.1",plan="pro",url_scheme="http"} 2
// http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="404",network_protocol_version="1.1",url_scheme="http"} 1
// orders_total{otel_scope_name="shop"} 3
