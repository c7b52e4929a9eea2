'use strict'

// The recipe of docs/recipes.md with a real Redis: the request that adds a job and the worker that runs it share one trace.

const { once } = require('node:events')
const { test } = require('tap')
const { Queue, Worker } = require('bullmq')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')

const connection = { host: '127.0.0.1', port: Number(process.env.SERVICES_REDIS_PORT), maxRetriesPerRequest: null }

test('a BullMQ job is in the trace that added it', async (t) => {
  const queue = new Queue('mails', { connection })
  t.teardown(() => queue.close())
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.post('/signup', async (request) => {
      await queue.add('welcome', { user: 7, trace: request.trace.inject() })
      return { traceId: request.trace.traceId }
    })
  })
  const worker = new Worker('mails', (job) => lightTrace.run(job.data.trace, { name: `process ${job.name}`, attributes: { 'messaging.system': 'bullmq' } }, async (trace) => {
    t.equal(lightTrace.current(), trace)
    if (job.data.user === 0) throw new RangeError('nobody')
    return trace.withSpan('send mail', async () => trace.traceId)
  }), { connection })
  t.teardown(() => worker.close())
  await worker.waitUntilReady()

  const completed = once(worker, 'completed')
  const { traceId } = (await app.inject({ method: 'POST', url: '/signup' })).json()
  const [, result] = await completed
  t.equal(result, traceId)

  const failed = once(worker, 'failed')
  await queue.add('welcome', { user: 0 })
  await failed

  const spans = await collector.spans()
  const server = spans.find(({ kind }) => kind === 'SERVER')
  const [job, other] = spans.filter(({ kind }) => kind === 'CONSUMER')
  t.match(job, { name: 'process welcome', traceId, status: { code: 'UNSET' }, attributes: { 'messaging.system': 'bullmq' } })
  t.equal(job.parentSpanId, server.spanId)
  t.match(spans.find(({ name }) => name === 'send mail'), { traceId, parentSpanId: job.spanId })
  t.match(other, { parentSpanId: undefined, status: { code: 'ERROR' }, attributes: { 'error.type': 'RangeError' } })
})
