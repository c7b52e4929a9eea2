'use strict'

// Elysia, run by Bun, bare or with its own OpenTelemetry plugin.

module.exports = ({ traced }) => {
  const { Elysia } = require('elysia')
  const versionsOf = require('../../server/versions')
  const spans = traced ? pipeline() : null
  return {
    versions: () => versionsOf(__filename, traced ? ['elysia', '@elysiajs/opentelemetry'] : ['elysia']),
    async start () {
      const app = new Elysia()
      if (traced) app.use(require('@elysiajs/opentelemetry').opentelemetry({ serviceName: 'bench', spanProcessors: [spans.processor] }))
      app.get('/', () => ({ hello: 'world' }))
      app.get('/text', () => 'hello world')
      app.post('/echo', ({ body }) => body)
      app.listen({ port: 0, hostname: '127.0.0.1' })
      return { port: app.server.port }
    },
    flush: spans?.flush,
    counts: spans?.counts
  }
}

function pipeline () {
  const countedPipeline = require('../../server/counted-pipeline')
  return countedPipeline({
    ...require('@opentelemetry/api'),
    ...require('@opentelemetry/sdk-trace-base'),
    ...require('@opentelemetry/exporter-trace-otlp-proto'),
    processorArguments: (exporter, options) => [exporter, options]
  })
}
