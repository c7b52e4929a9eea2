'use strict'

// A function that is frozen when its answer is out, with collectors of all kinds. LIGHT_TRACE_LONG=1 runs a hundred invocations of each
// test.
// Feature: serverless

const { test, setTimeout: setTestTimeout } = require('tap')
const { startFakeCollector } = require('../support/fake-collector')
const { unusedUrl } = require('../support/scenarios')
const { startLambda, ARN } = require('../support/lambda-simulator')

const IS_LONG = process.env.LIGHT_TRACE_LONG === '1'
setTestTimeout(IS_LONG ? 600_000 : 60_000)
const SPANS = 2 // the request's and one child

test('100 of 100 invocations are delivered before they are answered, with one export each', async (t) => {
  const collector = await startFakeCollector(t)
  const lambda = await startLambda(t, { traceOptions: { exporter: { url: collector.url } } })
  const late = []
  for (let i = 1; i <= 100; i++) {
    const { answer } = await lambda.invoke(`/orders/${i}`)
    if (answer.statusCode !== 200 || collector.delivered.size !== i * SPANS || collector.requests.length !== i) late.push(i)
    // Simulates minutes between invocations: the collector closes the idle connection.
    if (i % 3 === 0) for (const socket of collector.sockets) socket.destroy()
  }
  t.same(late, [])
  t.same(collector.duplicates, [])
})

test('with a slow collector, the answer waits for one export, and everything is delivered', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 200, delayMs: 100 }]
  const lambda = await startLambda(t, { traceOptions: { exporter: { url: collector.url } } })
  const count = IS_LONG ? 100 : 20
  const late = []
  for (let i = 1; i <= count; i++) {
    await lambda.invoke(`/orders/${i}`)
    if (collector.delivered.size !== i * SPANS || collector.requests.length !== i) late.push(i)
  }
  t.same(late, [])
  t.same(collector.duplicates, [])
})

test('with a collector slower than the deadline, the answer comes at the deadline, without loss or duplicates', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 200, delayMs: 150 }]
  const lambda = await startLambda(t, { traceOptions: { exporter: { url: collector.url } }, flushOptions: { timeoutMs: 50 } })
  const count = IS_LONG ? 100 : 20
  for (let i = 1; i <= count; i++) await lambda.invoke(`/orders/${i}`)
  collector.script = [{ status: 200 }]
  // The last spans arrive with an invocation that leaves them enough time.
  while (collector.delivered.size < count * SPANS) await lambda.invoke('/stats')
  t.equal(collector.delivered.size, count * SPANS)
  t.same(collector.duplicates, [])
})

test('with a hanging collector, the answer comes at the deadline, and its return brings everything', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const lambda = await startLambda(t, {
    traceOptions: { exporter: { url: collector.url, timeoutMs: 300 } },
    flushOptions: { timeoutMs: 200 }
  })
  const count = IS_LONG ? 100 : 5
  for (let i = 1; i <= count; i++) {
    const { answer } = await lambda.invoke(`/orders/${i}`)
    t.equal(answer.statusCode, 200)
  }
  t.equal(collector.delivered.size, 0)
  collector.script = [{ status: 200 }]
  while (collector.delivered.size < count * SPANS) await lambda.invoke('/stats')
  t.ok([...collector.delivered.values()].every((times) => times === 1), 'each once')
})

test('without a collector, the answer comes at once, and waiting spans are counted', async (t) => {
  const lambda = await startLambda(t, {
    traceOptions: { exporter: { url: await unusedUrl() } },
    flushOptions: { timeoutMs: 600_000 } // an answer that waited this long would not arrive within this test
  })
  const count = IS_LONG ? 100 : 20
  for (let i = 1; i <= count; i++) await lambda.invoke(`/orders/${i}`)
  const { spans, exports, lastError } = await stats(lambda)
  t.equal(spans.queued, count * SPANS)
  t.ok(exports.failed >= count)
  t.match(lastError, /ECONNREFUSED/)
  t.match(lambda.stderr, /LT_WARN_LOSS.*buffered for retry/)
})

for (const [what, behaviour] of Object.entries({
  'answers 503': { status: 503 },
  'answers 429 with a pause': { status: 429, headers: { 'retry-after': '300' } },
  'resets every connection': { resetAfterUpload: true }
})) {
  test(`with a collector that ${what}, the answer waits for one attempt, and nothing is lost`, async (t) => {
    const collector = await startFakeCollector(t)
    collector.script = [behaviour]
    const lambda = await startLambda(t, { traceOptions: { exporter: { url: collector.url } }, flushOptions: { timeoutMs: 600_000 } })
    for (let i = 1; i <= 20; i++) await lambda.invoke(`/orders/${i}`)
    t.equal((await stats(lambda)).spans.queued, 20 * SPANS)
  })
}

test('a hanging collector delays one invocation to the deadline, and the next ones by 50 ms until it answers', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const lambda = await startLambda(t, {
    traceOptions: { exporter: { url: collector.url, timeoutMs: 1500 } },
    flushOptions: { timeoutMs: 1000 }
  })
  const count = 70 // with a second for each, the test would time out
  for (let i = 1; i <= count; i++) await lambda.invoke(`/orders/${i}`)
  collector.script = [{ status: 200, delayMs: 60 }]
  while (collector.delivered.size < count * SPANS) await lambda.invoke('/stats')
  for (let i = 1; i <= 3; i++) await lambda.invoke(`/orders/${i}`)
  t.equal(collector.delivered.size, (count + 3) * SPANS, 'it answers, so they wait for it again')
})

test('an idle connection that died in the freeze costs one invocation the deadline, and is then replaced', async (t) => {
  const collector = await startFakeCollector(t)
  const lambda = await startLambda(t, {
    traceOptions: { exporter: { url: collector.url, timeoutMs: 600_000 } },
    flushOptions: { timeoutMs: 600 }
  })
  await lambda.invoke('/orders/1')
  const [{ remotePort }] = collector.requests
  collector.script = (request) => request.remotePort === remotePort ? { hang: true } : { status: 200 }
  for (let i = 2; i <= 4; i++) await lambda.invoke(`/orders/${i}`)
  while (collector.delivered.size < 4 * SPANS) await lambda.invoke('/stats')
  t.ok([...collector.delivered.values()].every((times) => times === 1), 'each once')
})

test('the platform\'s remaining time limits the wait', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const lambda = await startLambda(t, { traceOptions: { exporter: { url: collector.url } }, flushOptions: { timeoutMs: 600_000 } })
  const { answer } = await lambda.invoke('/orders/1', { timeLeftMs: 500 })
  t.equal(answer.statusCode, 200)
})

test('a handler with a callback is answered after the flush, too', async (t) => {
  const collector = await startFakeCollector(t)
  const lambda = await startLambda(t, { traceOptions: { exporter: { url: collector.url } }, isCallbackStyle: true })
  const { answer } = await lambda.invoke('/orders/1')
  t.equal(answer.statusCode, 200)
  t.equal(collector.delivered.size, SPANS)
})

test('a failed request is delivered, and an application that cannot start reports it itself', async (t) => {
  const collector = await startFakeCollector(t)
  const lambda = await startLambda(t, { traceOptions: { exporter: { url: collector.url } } })
  t.equal((await lambda.invoke('/fails')).answer.statusCode, 500)
  t.equal(collector.delivered.size, 1)
  const broken = await startLambda(t, { traceOptions: { sampler: 7 } })
  const { answer, error } = await broken.invoke('/orders/1')
  t.ok(error !== undefined || answer.statusCode === 500)
})

test('the span has its invocation, and is a child of X-Ray\'s if that is sampled', async (t) => {
  const collector = await startFakeCollector(t, { keepSpans: true })
  const lambda = await startLambda(t, { traceOptions: { exporter: { url: collector.url } } })
  const root = '5759e988bd862e3fe1be46a994272793'
  const traceHeader = (sampled) => `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=${sampled};Lineage=a:0`
  await lambda.invoke('/orders/1', { traceHeader: traceHeader(1) })
  await lambda.invoke('/orders/2', { traceHeader: traceHeader(0) })
  await lambda.invoke('/orders/3', { traceHeader: traceHeader(1), headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } })
  const [first, second, third] = collector.spans.filter(({ kind }) => kind === 'SERVER')

  t.match(first, { traceId: root, parentSpanId: '53995c3f42cd8ad8', name: 'GET /orders/:id' })
  t.equal(first.flags & 0x300, 0x300, 'a parent in another process')
  t.match(first.attributes, {
    'faas.trigger': 'http',
    'faas.invocation_id': 'request-1',
    'faas.coldstart': true,
    'aws.lambda.invoked_arn': ARN,
    'cloud.resource_id': ARN,
    'cloud.account.id': '123456789012'
  })
  t.match(first.resource, { 'cloud.provider': 'aws', 'cloud.platform': 'aws_lambda', 'faas.name': 'orders', 'faas.version': '$LATEST', 'cloud.region': 'eu-central-1' })

  t.not(second.traceId, root, 'unsampled X-Ray decides nothing')
  t.equal(second.parentSpanId, '')
  t.match(second.attributes, { 'faas.invocation_id': 'request-2', 'faas.coldstart': false })

  t.match(third, { traceId: '0af7651916cd43dd8448eb211c80319c', parentSpanId: 'b7ad6b7169203331' }, 'the caller\'s own header takes precedence')
})

async function stats (lambda) {
  return JSON.parse((await lambda.invoke('/stats')).answer.body)
}
