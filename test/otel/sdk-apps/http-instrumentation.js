'use strict'

// An app in a process that activates instrumentation-http before it loads anything else.
//   sdk      with a NodeSDK that traces
//   facade   without an SDK: it finds light-trace behind the API
//   metrics  with a NodeSDK that only has metrics, and without instrumentation-http

const { createRequire } = require('node:module')
const path = require('node:path')

const load = createRequire(path.join(process.env.FIXTURE, 'kit.js'))
const way = process.argv[3]

// The fixture's kit loads these only after the instrumentation is active.
const { NodeSDK } = load('@opentelemetry/sdk-node')
const { HttpInstrumentation } = load('@opentelemetry/instrumentation-http')
const { registerInstrumentations } = load('@opentelemetry/instrumentation')

let provided
if (way === 'facade') {
  registerInstrumentations({ instrumentations: [new HttpInstrumentation()] })
} else {
  process.env.OTEL_TRACES_EXPORTER = 'none'
  process.env.OTEL_METRICS_EXPORTER = 'none'
  process.env.OTEL_LOGS_EXPORTER = 'none'
  provided = []
  const spanProcessors = way === 'sdk' ? [{ onStart () {}, onEnd: (span) => provided.push(span), async forceFlush () {}, async shutdown () {} }] : []
  new NodeSDK({ spanProcessors, instrumentations: way === 'sdk' ? [new HttpInstrumentation()] : [], autoDetectResources: false }).start()
}

const http = require('node:http')
const { api, Fastify, lightTrace } = require(path.join(process.env.FIXTURE, 'kit.js'))

main()

async function main () {
  const ours = []
  const collector = { onStart () {}, onEnd: (span) => ours.push(span), async forceFlush () {}, async shutdown () {} }
  const app = Fastify({ forceCloseConnections: true })
  await app.register(lightTrace, way === 'sdk' ? {} : { spanProcessors: [collector] })
  const active = []
  app.get('/users/:id', async (request) => {
    request.trace.keep('asked for')
    active.push(api.trace.getActiveSpan() === request.trace.span, lightTrace.current() === request.trace)
    const traceId = await call(`${origin}/inner`, request.trace.inject())
    active.push(traceId === request.trace.traceId)
    return 'ok'
  })
  app.get('/inner', async (request) => request.trace.traceId)
  app.get('/fail', async () => { throw new TypeError('no') })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  await fetch(`${origin}/users/7`)
  await fetch(`${origin}/fail`)
  await app.lightTrace.flush()
  const { mode, spans: counts } = app.lightTrace.stats()
  await app.close()
  const spans = (provided?.length > 0 ? provided : ours).map((span) => ({
    name: span.name,
    kind: span.kind,
    scope: span.instrumentationScope.name,
    traceId: span.spanContext().traceId,
    spanId: span.spanContext().spanId,
    parent: span.parentSpanContext?.spanId,
    route: span.attributes['http.route'],
    path: span.attributes['url.path'],
    exception: span.events.find(({ name }) => name === 'exception')?.attributes['exception.type']
  }))
  console.log(JSON.stringify({ mode, counts, active, spans, both: provided?.length > 0 && ours.length > 0 }))
  process.exit()
}

function call (url, headers) {
  return new Promise((resolve, reject) => {
    http.get(url, { headers }, (response) => {
      response.setEncoding('utf8')
      let body = ''
      response.on('data', (piece) => { body += piece })
      response.on('end', () => resolve(body))
    }).on('error', reject)
  })
}
