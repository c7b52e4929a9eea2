'use strict'

// Fills an exporter with spans without our own encoder. The chunks are written by hand, in the format that the encoder and the
// exporter have agreed on.
//
//   chunk bytes = runs of  0x12 | length, 4 bytes padded | 0x0a scope | { 0x12 | length, 4 bytes padded | Span } …

const crypto = require('node:crypto')
const { Exporter } = require('../../lib/export/exporter')
const { Stats } = require('../../lib/export/pipeline')

const SCOPE = Buffer.concat([Buffer.from([0x0a, 6, 0x0a, 4]), Buffer.from('test')])
// resource { attributes { key: 'service.name', value { string_value: 'test' } } }
const RESOURCE = Buffer.concat([
  Buffer.from([0x0a, 24, 0x0a, 22, 0x0a, 12]), Buffer.from('service.name'), Buffer.from([0x12, 6, 0x0a, 4]), Buffer.from('test')
])
// Printable and almost incompressible, so that buffered spans take as many bytes as were written.
const NOISE = Buffer.from(Array.from(crypto.randomBytes(2 ** 21), (byte) => 0x20 + byte % 95))
const SCOPE_SPANS_HEADER_BYTES = 5
const FIXED_SPAN_BYTES = 5 + 18 + 10 + 9 + 9 + 2

const prefix = {
  head (chunkBytes) {
    const head = Buffer.alloc(6 + RESOURCE.length)
    const length = RESOURCE.length + chunkBytes
    head[0] = 0x0a
    for (let i = 0; i < 5; i++) head[1 + i] = (Math.floor(length / 128 ** i) & 0x7f) | (i < 4 ? 0x80 : 0)
    RESOURCE.copy(head, 6)
    return head
  }
}

module.exports = { startExporter, idOf, prefix }

// Each exporter numbers its spans from 1 and uses the number as span id, so that a test can name a lost or duplicate span.
function startExporter (t, { url, exporter = {}, buffer = {}, batch, closeTimeoutMs = 5000, ...rest }) {
  const stats = new Stats()
  const logged = []
  const lossesAt = new Map()
  const report = {
    sharing: () => report,
    attempt: (code, what, fn) => {
      try {
        return fn()
      } catch {
        logged.push({ code, message: what })
      }
    },
    warn: (code, message, kind) => {
      if (code !== 'LT_WARN_LOSS') return logged.push({ code, message })
      logged.push({ code: 'loss', kind, message })
      if (lossesAt.has(kind)) return false
      lossesAt.set(kind, true)
      return true
    },
    recovered: (kind, message) => {
      if (!lossesAt.delete(kind)) return false
      logged.push({ code: 'recovered', kind, message })
      return true
    }
  }
  const settings = {
    exporter: { url, headers: {}, compression: 'none', timeoutMs: 10_000, ...exporter },
    buffer: { maxBytes: 32 * 1024 * 1024, flushDelayMs: 1000, ...buffer },
    closeTimeoutMs,
    batch
  }
  const subject = new Exporter({ settings, prefix, stats, report, ...rest })
  t.teardown(() => subject.close())
  return { exporter: subject, stats, logged, ...writerFor(subject, stats) }
}

function writerFor (exporter, stats) {
  let last = 0
  return {
    // Writes spans of about `bytes` each, which compress as well as real ones or not at all.
    write (count = 1, bytes = 100, isCompressible = false) {
      for (let i = 0; i < count; i++) writeSpan(exporter, stats, ++last, bytes, isCompressible)
    },
    get written () {
      return last
    },
    // accepted = delivered + rejected + dropped + queued + inFlight
    identity () {
      const { spans } = stats.snapshot('native', exporter.queued, exporter.inFlight, { bytes: exporter.bufferBytes, maxBytes: 0 })
      const dropped = Object.values(spans.dropped).reduce((sum, n) => sum + n, 0)
      return spans.accepted - spans.delivered - spans.rejected - dropped - spans.queued - spans.inFlight
    }
  }
}

function idOf (number) {
  return number.toString(16).padStart(16, '0')
}

function writeSpan (exporter, stats, number, bytes, isCompressible) {
  stats.accepted++
  const nameBytes = Math.max(1, Math.min(bytes - FIXED_SPAN_BYTES, 2 ** 20))
  const messageBytes = 18 + 10 + 4 + nameBytes + 2 + 9 + 9
  const chunk = exporter.reserve(SCOPE_SPANS_HEADER_BYTES + SCOPE.length + 5 + messageBytes, true)
  if (chunk === null) return
  let at = chunk.length
  if (chunk.scope === null) at = startRun(chunk, at)
  const spanStart = at
  at = writeMessage(chunk, at + 5, number, nameBytes, isCompressible)
  putLength(chunk.bytes, spanStart, at - spanStart - 5)
  putLength(chunk.bytes, chunk.scopeSpansStart, at - chunk.scopeSpansStart - SCOPE_SPANS_HEADER_BYTES)
  exporter.commit(chunk, at)
}

function startRun (chunk, at) {
  chunk.scopeSpansStart = at
  chunk.scope = 'test'
  SCOPE.copy(chunk.bytes, at + SCOPE_SPANS_HEADER_BYTES)
  return at + SCOPE_SPANS_HEADER_BYTES + SCOPE.length
}

function writeMessage (chunk, at, number, nameBytes, isCompressible) {
  const { bytes, view } = chunk
  bytes[at++] = 0x0a // trace_id
  bytes[at++] = 16
  bytes.fill(0xab, at, at += 16)
  bytes[at++] = 0x12 // span_id
  bytes[at++] = 8
  view.setUint32(at, Math.floor(number / 2 ** 32))
  view.setUint32(at + 4, number)
  at += 8
  bytes[at++] = 0x2a // name
  putVarint3(bytes, at, nameBytes)
  at += 3
  const from = isCompressible ? 0 : number * nameBytes % (NOISE.length - nameBytes)
  NOISE.copy(bytes, at, from, from + nameBytes)
  at += nameBytes
  bytes[at++] = 0x30 // kind
  bytes[at++] = 2
  bytes[at++] = 0x39 // start
  view.setBigUint64(at, 1_700_000_000_000_000_000n, true)
  at += 8
  bytes[at++] = 0x41 // end
  view.setBigUint64(at, 1_700_000_000_000_001_000n, true)
  return at + 8
}

function putVarint3 (bytes, at, value) {
  bytes[at] = (value & 0x7f) | 0x80
  bytes[at + 1] = (value >> 7 & 0x7f) | 0x80
  bytes[at + 2] = value >> 14
}

function putLength (bytes, at, length) {
  bytes[at] = 0x12
  bytes[at + 1] = (length & 0x7f) | 0x80
  bytes[at + 2] = (length >> 7 & 0x7f) | 0x80
  bytes[at + 3] = (length >> 14 & 0x7f) | 0x80
  bytes[at + 4] = length >> 21
}
