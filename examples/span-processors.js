'use strict'

// Uses the OpenTelemetry SDK's processors and exporters: spans go to them instead of light-trace's own exporter.
// This is SDK 2.x. In SDK 3.x the processor is `new BatchSpanProcessor({ exporter })` from @opentelemetry/sdk-trace.

const Fastify = require('fastify')
const { BatchSpanProcessor, InMemorySpanExporter } = require('@opentelemetry/sdk-trace-base')
const lightTrace = require('light-trace')

async function main () {
  const exporter = new InMemorySpanExporter()
  const app = Fastify()
  await app.register(lightTrace, { spanProcessors: [new BatchSpanProcessor(exporter)] })
  app.get('/users/:id', async () => 'ok')

  await app.inject('/users/7')
  await app.lightTrace.flush()
  for (const { name, attributes } of exporter.getFinishedSpans()) console.log(name, attributes['url.path'])
  console.log(app.lightTrace.stats().mode)
  await app.close()
}

main()

// Prints:
// GET /users/:id /users/7
// processors
