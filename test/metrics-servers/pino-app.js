'use strict'

// An application whose log lines become records twice, by light-trace and by instrumentation-pino. Prints both.

const { join } = require('node:path')
const peer = (name) => require(join(process.env.METRICS_PEERS, 'node_modules', name))
const { PinoInstrumentation } = peer('@opentelemetry/instrumentation-pino')
const { LoggerProvider, InMemoryLogRecordExporter, SimpleLogRecordProcessor } = peer('@opentelemetry/sdk-logs')

const exporter = new InMemoryLogRecordExporter()
peer('@opentelemetry/api-logs').logs.setGlobalLoggerProvider(new LoggerProvider({ processors: [new SimpleLogRecordProcessor(exporter)] }))
new PinoInstrumentation({ disableLogCorrelation: true }).enable()

const pino = peer('pino')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { createCollector } = require('../../lib/features/testing/testing')

async function main () {
  const collector = createCollector()
  const loggerInstance = pino({ level: 'debug', redact: ['password'], mixin: () => ({ mixed: true }) }, { write () {} })
  const app = Fastify({ loggerInstance })
  await app.register(lightTrace, { spanProcessors: [collector], logs: { export: true } })
  app.get('/', async ({ log, trace }) => {
    log.info('plain')
    log.debug({ a: 1, b: 1.5, c: [1, 2], e: { f: true }, password: 'hunter2' }, 'fields %d', 7)
    log.child({ part: 'cart' }).warn('of a child')
    await trace.withSpan('step', async () => app.log.error({ code: 7 }, 'in a step'))
    return 'ok'
  })
  await app.ready()
  exporter.reset()
  collector.reset()
  for (let i = 0; i < 2; i++) await app.inject('/')
  loggerInstance.fatal({ quote: '"\\', umlaut: '\u00e4\ud83d\ude00' }, 'the end')
  const ours = (await collector.logs()).map((record) => ({ ...record, time: Math.floor(record.time / 1000) }))
  const theirs = exporter.getFinishedLogRecords().map(({ hrTime, severityNumber, severityText, body, attributes, spanContext }) => ({
    time: hrTime[0], severityNumber, severityText, body, attributes, traceId: spanContext?.traceId ?? '', spanId: spanContext?.spanId ?? ''
  }))
  process.stdout.write(JSON.stringify({ ours: ours.map(shown), theirs: theirs.map(shown) }))
  await app.close()
}

function shown ({ severityNumber, severityText, body, attributes, traceId, spanId }) {
  return { severityNumber, severityText, body, attributes: Object.fromEntries(Object.entries(attributes).sort(([a], [b]) => a < b ? -1 : 1)), traceId, spanId }
}

main()
