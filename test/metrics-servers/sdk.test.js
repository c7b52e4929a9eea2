'use strict'

// Compares light-trace with OpenTelemetry's instrumentations. The same requests are counted by light-trace and by
// @opentelemetry/instrumentation-http with the SDK's InMemoryMetricExporter. The same log lines are read by light-trace and by
// @opentelemetry/instrumentation-pino. All series and records agree.

const { test } = require('tap')
const { join } = require('node:path')
const { runProgram } = require('../support/program')

const { METRICS_PEERS } = process.env

test('light-trace and the SDK agree about the same requests', async (t) => {
  const { code, stdout, stderr } = await runProgram([join(__dirname, 'sdk-app.js')], { METRICS_PEERS, OTEL_SEMCONV_STABILITY_OPT_IN: 'http' })
  t.equal(code, 0, stderr)
  const { ours, theirs } = JSON.parse(stdout)
  t.ok(ours.length >= 5)
  t.same(ours, theirs)
})

test('light-trace and instrumentation-pino agree about the same lines', async (t) => {
  const { code, stdout, stderr } = await runProgram([join(__dirname, 'pino-app.js')], { METRICS_PEERS })
  t.equal(code, 0, stderr)
  const { ours, theirs } = JSON.parse(stdout)
  t.ok(ours.length >= 10)
  // Fastify writes this line before any hook runs. Our record has the trace of the request anyway.
  const isFirst = ({ body }) => body === 'incoming request'
  t.ok(ours.filter(isFirst).every(({ traceId, spanId }) => /^[0-9a-f]{32}$/.test(traceId) && /^[0-9a-f]{16}$/.test(spanId)))
  t.same(ours, theirs.map((record, i) => isFirst(record) ? { ...record, traceId: ours[i].traceId, spanId: ours[i].spanId } : record))
})
