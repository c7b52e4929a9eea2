'use strict'

// Three services in separate processes call each other with fetch, reply-from and node:http. Jaeger has one trace.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { join } = require('node:path')
const { createInterface } = require('node:readline')
const { setTimeout: pause } = require('node:timers/promises')
const { test } = require('tap')

const [major, minor] = process.versions.node.split('.').map(Number)
const canInject = major > 22 || (major === 22 && minor >= 12)
const TRACE_ID = () => require('node:crypto').randomBytes(16).toString('hex')

test('three services are one trace in Jaeger', async (t) => {
  const stock = await service(t, 'stock', {})
  const gateway = await service(t, 'gateway', { stock: stock.origin })
  const shop = await service(t, 'shop', { gateway: gateway.origin, stock: stock.origin })
  const traceId = TRACE_ID()
  const response = await fetch(`${shop.origin}/orders/7`, { headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } })
  t.same(await response.json(), { viaGateway: { id: '7' }, direct: 200 })

  const tree = [
    'shop SERVER GET /orders/:id',
    '  shop CLIENT GET',
    '    gateway SERVER GET /items/:id',
    '      gateway CLIENT GET',
    '        stock SERVER GET /items/:id',
    '  shop CLIENT GET',
    // Node 20 reports a call of node:http only after its headers are sent, so the next service begins its own trace.
    ...(canInject ? ['    stock SERVER GET /items/:id'] : [])
  ]
  t.equal(drawn(await spansOf(traceId, tree.length)), tree.join('\n'))
})

async function service (t, name, next) {
  const child = spawn(process.execPath, [join(__dirname, 'fleet.js'), name, JSON.stringify(next)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: process.env.COLLECTOR_JAEGER_TRACES, OTEL_BSP_SCHEDULE_DELAY: '100' }
  })
  t.teardown(async () => {
    child.stdin.end()
    await once(child, 'exit')
  })
  const [origin] = await once(createInterface(child.stdout), 'line')
  return { origin }
}

async function spansOf (traceId, count) {
  for (let tries = 0; tries < 400; tries++, await pause(50)) {
    const { data } = await (await fetch(`${process.env.COLLECTOR_JAEGER_QUERY}/api/traces/${traceId}`)).json()
    const [trace] = data ?? []
    if (trace?.spans.length >= count) return trace.spans.map((span) => ({ ...span, service: trace.processes[span.processID].serviceName }))
  }
  throw new Error(`Jaeger has not got ${count} spans of ${traceId}`)
}

function drawn (spans) {
  const parentOf = (span) => span.references.find(({ refType }) => refType === 'CHILD_OF')?.spanID
  const known = new Set(spans.map(({ spanID }) => spanID))
  const lines = (parents, depth) => spans.filter(parents).sort((a, b) => a.startTime - b.startTime).flatMap((span) => [
    `${'  '.repeat(depth)}${span.service} ${span.tags.find(({ key }) => key === 'span.kind').value.toUpperCase()} ${span.operationName}`,
    ...lines((other) => parentOf(other) === span.spanID, depth + 1)
  ])
  return lines((span) => !known.has(parentOf(span)), 0).join('\n')
}
