'use strict'

// Shared by the span benchmarks: a tracer whose spans are encoded into one chunk that is reused, and route, peer and incoming context as
// Fastify's hooks make them.

const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js')
const { Chunk } = require('../../lib/export/chunk-buffer')
const { resolveOptions } = require('../../lib/config/options')
const { Report } = require('../../lib/runtime/report')
const { RouteInfo, Place, PeerInfo } = require('../../lib/span/http-info')
const { IncomingContext } = require('../../lib/context/trace-context')
const { newTraceId } = require('../../lib/context/ids')
const { Scope } = require('../../lib/span/recording-span')
const { Tracer } = require('../../lib/tracer')

const { ScopeSpans } = opentelemetry.proto.trace.v1

const route = new RouteInfo('GET', '', '/')
const peer = new PeerInfo(new Place('127.0.0.1', true, 'localhost:3000', undefined, 'http', null, '127.0.0.1', '127.0.0.1', 'localhost', 3000), 50123, 11, '1.1', undefined, '127.0.0.1', undefined, '')

module.exports = { openTracer, openChunk, decodeChunk, route, peer, newIncoming }

function openTracer (options) {
  const log = { info () {}, warn () {}, error () {}, debug () {} }
  const tracer = new Tracer(resolveOptions({ exporter: 'none', ...options }), new Report(log), new Scope('light-trace', '0'))
  tracer.open()
  return tracer
}

function newIncoming () {
  const incoming = new IncomingContext()
  newTraceId(incoming)
  incoming.start = performance.now()
  return incoming
}

function openChunk () {
  return new OneChunk()
}

// Replaces the exporter. Starts over when the chunk is full.
class OneChunk {
  constructor () {
    this.chunk = new Chunk(Buffer.allocUnsafeSlow(256 * 1024))
  }

  reserve (byteCount) {
    const { chunk } = this
    if (chunk.length + byteCount > chunk.capacity) this.empty()
    return chunk
  }

  commit (chunk, end) {
    chunk.length = end
    chunk.spans++
  }

  empty () {
    const { chunk } = this
    chunk.length = 0
    chunk.spans = 0
    chunk.scope = null
    chunk.scopeSpansStart = 0
  }
}

// → the spans in a chunk, read by a third-party decoder. The tag and padded length of a run take five bytes.
function decodeChunk ({ bytes, length }) {
  const spans = []
  for (let at = 0; at < length;) {
    const runLength = (bytes[at + 1] & 0x7f) | (bytes[at + 2] & 0x7f) << 7 | (bytes[at + 3] & 0x7f) << 14 | (bytes[at + 4] & 0x7f) << 21
    spans.push(...ScopeSpans.decode(bytes.subarray(at + 5, at + 5 + runLength)).spans)
    at += 5 + runLength
  }
  return spans
}
