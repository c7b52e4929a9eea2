'use strict'

// An application whose requests are counted twice, by light-trace and by instrumentation-http. Prints both, without the durations
// themselves.

const { join } = require('node:path')
const peer = (name) => require(join(process.env.METRICS_PEERS, 'node_modules', name))
const { HttpInstrumentation } = peer('@opentelemetry/instrumentation-http')
const { MeterProvider, InMemoryMetricExporter, PeriodicExportingMetricReader, AggregationTemporality } = peer('@opentelemetry/sdk-metrics')

const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
const provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 })] })
// The provider is not registered with the API, or light-trace would record through it. Outgoing calls are not instrumented.
const instrumentation = new HttpInstrumentation({ disableOutgoingRequestInstrumentation: true })
instrumentation.setMeterProvider(provider)
instrumentation.enable()

const http = require('node:http')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { createCollector } = require('../../lib/features/testing/testing')

const DURATION = 'http.server.request.duration'

async function main () {
  const collector = createCollector()
  const app = Fastify()
  await app.register(lightTrace, { spanProcessors: [collector], metrics: true })
  app.get('/users/:id', async () => ({ ok: true }))
  app.post('/users', async (request, reply) => reply.code(201).send({}))
  app.get('/boom', async () => { throw new Error('boom') })
  app.get('/missing', async (request, reply) => reply.code(404).send('none'))
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address()
  for (const [method, path] of [['GET', '/users/1'], ['GET', '/users/2'], ['POST', '/users'], ['GET', '/boom'], ['GET', '/missing'], ['GET', '/nowhere'], ['HEAD', '/users/3']]) {
    await new Promise((resolve, reject) => {
      http.request({ port, host: '127.0.0.1', method, path, agent: false }, (response) => response.resume().on('end', resolve)).on('error', reject).end()
    })
  }
  const [duration] = (await collector.metrics()).filter(({ name }) => name === DURATION)
  await provider.forceFlush()
  const theirs = exporter.getMetrics().at(-1).scopeMetrics.flatMap(({ metrics }) => metrics).find(({ descriptor }) => descriptor.name === DURATION)
  const ours = duration.points.map(({ attributes, count, bounds }) => series(attributes, count, bounds))
  process.stdout.write(JSON.stringify({
    ours: ours.sort(),
    theirs: theirs.dataPoints.map(({ attributes, value }) => series(attributes, value.count, value.buckets.boundaries)).sort()
  }))
  await app.close()
}

/** Returns a series as text. error.type is left out, because instrumentation-http has it only since 0.221, and only as the number of a status. */
function series (attributes, count, bounds) {
  const shown = Object.entries(attributes).filter(([key]) => key !== 'error.type').map(([key, value]) => `${key}=${value}`).sort()
  return `${shown.join(' ')} count=${count} bounds=${bounds.join()}`
}

main()
