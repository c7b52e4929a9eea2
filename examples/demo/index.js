'use strict'

// npm run demo: sends requests to the shop over HTTP and prints their spans. If OTEL_EXPORTER_OTLP_ENDPOINT is set, the spans also go
// there.

const { createCollector } = require('light-trace/testing')
const { drawTree, spanLabel } = require('../../lib/features/console')
const { buildShop } = require('./app')
const { sender } = require('./sender')

const REQUESTS = [
  ['GET', '/users/7?tab=orders'],
  ['POST', '/orders', { item: 'lamp' }],
  ['POST', '/orders', { thing: 'lamp' }],
  ['GET', '/report'],
  ['GET', '/export'],
  ['GET', '/nothing-here']
]

const isAskedToSend = Boolean(process.env.OTEL_EXPORTER_OTLP_ENDPOINT || process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT)

async function main () {
  const collector = createCollector()
  const collectorElsewhere = isAskedToSend ? sender() : null
  const shop = await buildShop({
    spanProcessors: collectorElsewhere === null ? [collector] : [collector, collectorElsewhere],
    spans: { codeLocation: false } // paths differ between machines
  })
  const origin = await shop.listen({ port: 0, host: '127.0.0.1' })

  for (const [method, url, body] of REQUESTS) {
    collector.reset()
    const response = await ask(origin, method, url, body)
    console.log(`${method} ${url} → ${response.status}`)
    console.log(indent(await picture(collector)) + '\n')
    if (url === REQUESTS[0][1]) showWhole((await collector.spans())[0])
  }
  await shop.close()
  console.log(collectorElsewhere === null
    ? 'Set OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 to send them to your collector.'
    : collectorElsewhere.summary())
}

async function ask (origin, method, url, body) {
  const response = await fetch(origin + url, {
    method,
    headers: { 'user-agent': 'demo', ...(body && { 'content-type': 'application/json' }) },
    body: body && JSON.stringify(body)
  })
  await response.text()
  return response
}

async function picture (collector) {
  return drawTree(await collector.spans(), (span) => {
    const { kind, name, status, attributes, duration } = span
    return `${spanLabel({ kind, name, status: status.code, errorType: attributes['error.type'] })}  ${duration.toFixed(1)} ms`
  })
}

/** Prints the first request's own span with everything that a collector receives. */
function showWhole ({ name, kind, traceId, spanId, attributes }) {
  const lines = Object.entries({ traceId, spanId, ...attributes })
    .map(([key, value]) => `  ${key.padEnd(26)} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  console.log(indent([`${kind} ${name} in full`, ...lines].join('\n')) + '\n')
}

function indent (text) {
  return text.replace(/^/gm, '  ')
}

main()
