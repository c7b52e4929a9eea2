'use strict'

// Fewer spans: sample when a request starts, ignore paths that you do not look at, decide per route.
// A caller's sampled flag takes precedence. Without one, the sampler decides.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

async function main () {
  const app = Fastify()
  await app.register(lightTrace, {
    exporter: 'console',
    sampler: 0, // 0.1 would sample every tenth trace
    ignore: ['/health', '/assets/*']
  })
  const answer = async (request) => String(request.trace.sampled)
  app.get('/search', answer)
  app.get('/checkout', { config: { trace: { sampler: 'always_on', attributes: { 'app.tier': 'gold' } } } }, answer)
  app.get('/metrics', { config: { trace: false } }, answer)
  app.get('/health', answer)

  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  for (const url of ['/search', '/checkout', '/metrics', '/health']) console.log(url, (await app.inject(url)).body)
  console.log('/search, sampled by its caller', (await app.inject({ url: '/search', headers: { traceparent } })).body)
  await app.close()
}

main()

// Prints:
// /search false
// SERVER GET /checkout … ms trace_id=…
// /checkout true
// /metrics false
// /health false
// SERVER GET /search … ms trace_id=…
// /search, sampled by its caller true
