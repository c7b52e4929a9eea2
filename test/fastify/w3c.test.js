'use strict'

// The W3C's test suite against a traced service on a real socket, with the suite's protocol. It POSTs a list of { url, arguments }, and the
// service POSTs the arguments to each url with the headers of `request.trace.inject()`. Each call is an operation with its own span.

const { test, before, after } = require('tap')
const http = require('node:http')
const net = require('node:net')
const { once } = require('node:events')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { collectorFor } = require('../support/collector')
const { cases, PARENT_ID } = require('../support/w3c-cases')
const { checkStep, parseHeaders } = require('../support/w3c-check')

let collector
const service = Fastify({ forceCloseConnections: true })
const received = []
const harness = http.createServer((request, response) => {
  received.push(pairs(request.rawHeaders))
  request.resume()
  response.setHeader('content-type', 'application/json')
  response.end('null')
})

before(async () => {
  const { collector: own, options } = await collectorFor()
  collector = own
  await service.register(lightTrace, { ...options, registerGlobals: false })
  service.post('/test', async (request) => {
    for (const { url, arguments: toSend } of request.body) {
      await request.trace.withSpan('call', () => post(url, request.trace.inject({ 'content-type': 'application/json' }), JSON.stringify(toSend)))
    }
    return {}
  })
  await service.listen({ port: 0, host: '127.0.0.1' })
  harness.listen(0, '127.0.0.1')
  await once(harness, 'listening')
  // The runner ends, and runs `after`, when nothing else keeps the process alive.
  service.server.unref()
  harness.unref()
})

after(async () => {
  await service.close()
  harness.closeAllConnections()
  await new Promise((resolve) => harness.close(resolve))
})

test('the suite has 41 cases', async (t) => {
  t.equal(cases.length, 41)
  t.equal(new Set(cases.map(({ name }) => name)).size, 41)
})

for (const { name, steps } of cases) {
  test(`W3C: ${name}`, async (t) => {
    for (const step of steps) {
      const calls = await callService(step.headers, step.calls)
      checkStep(t, step, calls)
      checkSpan(t, step, calls, (await collector.spans()).find(({ kind }) => kind === 'SERVER'))
      collector.reset()
    }
  })
}

/** Checks that the exported span agrees with the headers. */
function checkSpan (t, { expect }, [call], span) {
  const { traceId, flags } = parseHeaders(t, call)
  t.equal(span !== undefined, (flags & 0x01) === 0x01, 'a sampled request has a span')
  if (span === undefined) return
  t.equal(span.traceId, traceId, 'the span is in the trace of its calls')
  t.equal(span.parentSpanId, expect.trace === 'same' ? PARENT_ID : undefined, 'the span is a child of a trusted caller')
}

/** Sends one request with exactly these header lines. Resolves to the headers of the calls that it caused. */
async function callService (headers, count = 1) {
  received.length = 0
  const { port } = harness.address()
  const body = JSON.stringify(Array.from({ length: count }, (_, i) => ({ url: `http://127.0.0.1:${port}/${i}`, arguments: [] })))
  const lines = ['POST /test HTTP/1.1', 'Host: w3c', 'Connection: close', 'Content-Type: application/json',
    `Content-Length: ${body.length}`, ...headers.map(([name, value]) => `${name}:${value}`)]
  const socket = net.connect(service.server.address().port, '127.0.0.1')
  socket.setEncoding('latin1')
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1')
  let answer = ''
  for await (const chunk of socket) answer += chunk
  if (!answer.startsWith('HTTP/1.1 200 ')) throw new Error(`the service answered ${answer}`)
  return received.slice()
}

function post (url, headers, body) {
  return new Promise((resolve, reject) => {
    const call = http.request(url, { method: 'POST', headers, agent: false }, (response) => {
      response.resume().on('end', resolve)
    })
    call.on('error', reject)
    call.end(body)
  })
}

function pairs (rawHeaders) {
  const list = []
  for (let i = 0; i < rawHeaders.length; i += 2) list.push([rawHeaders[i], rawHeaders[i + 1]])
  return list
}
