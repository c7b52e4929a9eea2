'use strict'

// The collector of the bench. It receives OTLP protobuf at /<case>/v1/traces, counts every span, and keeps a sample of the bodies for
// full decoding after the round. It does no more than that, because on a machine with two cores it shares one with the load.
// /upstream answers the outbound calls of cases that make one.

const http = require('node:http')
const zlib = require('node:zlib')
const { answer } = require('../run/ipc')
const countSpans = require('./count-spans')
const checkOtlp = require('./check-samples')

const SAMPLE_EVERY_MS = 300
const SAMPLE_BODIES_MAX = 12

let inbox = emptyInbox()

const server = http.createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  if (request.url === '/upstream') return response.end('ok')
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => receive(request, response, Buffer.concat(chunks)))
})

server.listen(0, '127.0.0.1', () => process.send({ ready: true, port: server.address().port, node: process.version }))

answer({
  // Before a round: resets the counts and sets the response delay.
  expect ({ delayMs = 0 } = {}) { inbox = emptyInbox(delayMs) },
  received: () => ({ spans: inbox.spans, bodies: inbox.bodies, bytes: inbox.bytes, unreadable: inbox.unreadable }),
  check: (expected) => checkOtlp(inbox.samples, expected)
})

function emptyInbox (delayMs = 0) {
  return { spans: 0, bodies: 0, bytes: 0, unreadable: 0, samples: [], lastSampleAt: 0, delayMs }
}

function receive (request, response, body) {
  inbox.bytes += body.length
  if (request.url.endsWith('/v1/traces')) {
    if (request.headers['content-encoding'] !== 'gzip') return receiveOtlp(response, body)
    return zlib.gunzip(body, (error, plain) => {
      if (error) inbox.unreadable++
      else receiveOtlp(response, plain)
    })
  }
  if (request.url.endsWith('/v1/logs')) response.setHeader('content-type', 'application/x-protobuf')
  response.end(request.url.endsWith('/v1/logs') ? '' : '{}')
}

function receiveOtlp (response, body) {
  const spans = countSpans(body)
  if (spans < 0) inbox.unreadable++
  else inbox.spans += spans
  sample(body)
  response.setHeader('content-type', 'application/x-protobuf')
  if (inbox.delayMs === 0) response.end()
  else setTimeout(() => response.end(), inbox.delayMs)
}

function sample (body) {
  inbox.bodies++
  const now = performance.now()
  if (inbox.samples.length >= SAMPLE_BODIES_MAX || now - inbox.lastSampleAt < SAMPLE_EVERY_MS) return
  inbox.lastSampleAt = now
  inbox.samples.push(body)
}
