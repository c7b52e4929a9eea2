'use strict'

// npm run bench:log-lines: the cost of a log line in a request, as CPU time of the whole process with all its threads. Compares, in one
// run, pino alone, light-trace's export and other exporters.
//
// Each kind runs in its own process, and the kinds take turns. All print to /dev/null synchronously. A line counts as done when a
// collector in another process has received its record, so the figure includes sending, and nothing is lost.
//
//   --rounds 5       processes per kind
//   --requests 400   measured requests per process, each with a hundred lines
//   --publish        writes bench/results/log-lines.json, the source of a table of `npm run docs:figures`

const { fork } = require('node:child_process')
const { once } = require('node:events')
const http = require('node:http')
const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises')
const { parseArgs } = require('node:util')
const installMissing = require('./install')
const { describeCommit, describeMachine } = require('./run/machine')
const { nodeOfMajor } = require('./run/binaries')
const { HEADLINE_NODE } = require('./cases')
const { writeResults } = require('./report/results-file')

const LINES = 100 // per request
const WARM_UP = 300 // requests
const QUEUE_MAX = '1000000' // for the rivals' processors, so that they drop no records

const KINDS = {
  pino: { label: 'pino', exports: false, tracing: () => ({}) },
  'light-trace': { label: 'light-trace, lines with ids', exports: false, tracing: (url) => lightTrace(url, true) },
  exported: { label: 'light-trace, lines exported', exports: true, tracing: (url) => lightTrace(url, { export: true, maxPerSecond: 1e9 }) },
  sdk: { label: 'NodeSDK with http, @fastify/otel and pino, lines exported', exports: true, tracing: nodeSdk },
  transport: { label: 'pino-opentelemetry-transport in a worker, no traces, lines without ids', exports: true, tracing: transport }
}

if (process.argv[2] === 'measure') measure(process.argv[3], process.argv[4], Number(process.argv[5]))
else main()

async function main () {
  const { values: { rounds, requests, publish } } = parseArgs({
    options: { rounds: { type: 'string', default: '5' }, requests: { type: 'string', default: '400' }, publish: { type: 'boolean', default: false } }
  })
  installMissing(['rivals'])
  const provenance = { date: new Date().toISOString(), ...describeCommit(__dirname), machine: { ...describeMachine(), pinning: 'not pinned' } }
  const sink = await startSink()
  const micros = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, []]))
  let runtime
  for (let round = 0; round < Number(rounds); round++) {
    for (const kind of Object.keys(KINDS)) {
      sink.records = 0
      const child = fork(__filename, ['measure', kind, sink.url, requests], { execPath: nodeOfMajor(HEADLINE_NODE) })
      const [measured] = await once(child, 'message')
      runtime = measured.runtime
      micros[kind].push(measured.micros)
    }
  }
  sink.server.close()
  const base = median(micros.pino)
  const rows = Object.entries(KINDS).map(([kind, { label }]) => {
    const sorted = micros[kind].toSorted((a, b) => a - b)
    return { label, median: median(sorted), min: sorted[0], max: sorted.at(-1), over: median(sorted) - base }
  })
  console.table(rows)
  if (publish) console.error(`wrote ${writeResults('log-lines', { ...provenance, node: runtime, rounds: Number(rounds), lines: LINES * Number(requests), rows })}`)
}

function median (list) {
  return list.toSorted((a, b) => a - b)[list.length >> 1]
}

/** A collector that counts log records and returns the count on GET. */
async function startSink () {
  const { decodeLogs } = require('../test/support/log-decode')
  const sink = { records: 0, url: '', server: null }
  sink.server = http.createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.method === 'GET') return response.end(String(sink.records))
    if (request.url === '/v1/logs') sink.records += decodeLogs(Buffer.concat(chunks)).filter(({ body }) => body === 'the stock was reserved').length
    response.end()
  })
  sink.server.listen(0, '127.0.0.1')
  await once(sink.server, 'listening')
  sink.url = `http://127.0.0.1:${sink.server.address().port}`
  return sink
}

async function measure (kind, url, requests) {
  const { exports, tracing } = KINDS[kind]
  const { register, stream = toNowhere(), flush = () => {} } = tracing(url)
  const app = require('fastify')({ logger: { stream } })
  await register?.(app)
  app.get('/', async ({ log }) => {
    for (let step = 0; step < LINES; step++) log.info({ order: 'order-7', step, took: 1.25, stock: { sku: 'a-1', left: 3 } }, 'the stock was reserved')
    return 'ok'
  })
  await app.ready()
  const run = async (count, total) => {
    for (let i = 0; i < count; i++) {
      await app.inject('/')
      await turn()
    }
    await flush(app)
    for (const wanted = exports ? total * LINES : 0; await recordsOf(url) < wanted;) await sleep(50)
  }
  await run(WARM_UP, WARM_UP)
  const before = process.cpuUsage()
  await run(requests, WARM_UP + requests)
  const { user, system } = process.cpuUsage(before)
  process.send({ runtime: process.version, micros: (user + system) / (requests * LINES) }, () => process.exit())
}

async function recordsOf (url) {
  const [response] = await once(http.get(url, { agent: false }), 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return Number(text)
}

function toNowhere () {
  return require('pino').destination({ dest: '/dev/null', sync: true })
}

// ---- exporters

function lightTrace (url, logs) {
  return {
    register: (app) => app.register(require('..'), { exporter: { url: `${url}/v1/traces` }, logs }),
    flush: (app) => app.lightTrace.flush()
  }
}

function nodeSdk (url) {
  Object.assign(process.env, { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_LOGS_EXPORTER: 'otlp', OTEL_METRICS_EXPORTER: 'none', OTEL_BLRP_MAX_QUEUE_SIZE: QUEUE_MAX })
  const { NodeSDK } = require('@opentelemetry/sdk-node')
  const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
  const { PinoInstrumentation } = require('@opentelemetry/instrumentation-pino')
  const { FastifyOtelInstrumentation } = require('@fastify/otel')
  new NodeSDK({ serviceName: 'bench', instrumentations: [new HttpInstrumentation(), new PinoInstrumentation(), new FastifyOtelInstrumentation({ registerOnInitialization: true })] }).start()
  return { flush: () => require('@opentelemetry/api-logs').logs.getLoggerProvider().forceFlush?.() }
}

/** Its worker does all the exporting; the main thread only hands the lines over. */
function transport (url) {
  const pino = require('pino')
  const logRecordProcessorOptions = {
    recordProcessorType: 'batch',
    exporterOptions: { protocol: 'http/protobuf', protobufExporterOptions: { url: `${url}/v1/logs` } },
    processorConfig: { maxQueueSize: Number(QUEUE_MAX), maxExportBatchSize: 512, scheduledDelayMillis: 1000 }
  }
  const worker = pino.transport({ target: require.resolve('pino-opentelemetry-transport'), options: { loggerName: 'bench', serviceVersion: '1', logRecordProcessorOptions } })
  return { stream: pino.multistream([{ stream: toNowhere() }, { stream: worker }]) }
}
