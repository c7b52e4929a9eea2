'use strict'

// Runs every parser of external bytes with mutations of valid inputs. A target throws if the parser throws or if its result is impossible.

const assert = require('node:assert')
const { Reader } = require('protobufjs/minimal')
const { checkTraceparent, checkTracestate, checkBaggage } = require('./w3c-reader')
const { resolveOptions } = require('../../lib/config/options')
const { peerInfo, forwardedPeerInfo, requestTarget, splitHost } = require('../../lib/http/conventions')
const { QueryRedactor } = require('../../lib/http/redact')
const { HttpResponse, KEPT_BYTES_MAX, readPartialSuccess } = require('../../lib/export/http/response')
const { negotiate } = require('../../lib/features/metrics/prometheus')
const { TraceState, randomnessOf, thresholdOf, withThreshold, withoutThreshold, cleanTracestate } = require('../../lib/context/tracestate')
const { retryAfterMs, RETRY_AFTER_MAX_MS } = require('../../lib/export/http/retry')
const { halvesOf } = require('../../lib/otlp/request')
const { printable } = require('../../lib/runtime/report')
const { randomFrom } = require('./random')

const TRACE = '12345678901234567890123456789012-1234567890123456'
const VARIABLES = [
  'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TIMEOUT',
  'OTEL_EXPORTER_OTLP_COMPRESSION', 'OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_CERTIFICATE', 'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_SERVICE_NAME', 'OTEL_TRACES_SAMPLER', 'OTEL_TRACES_SAMPLER_ARG', 'OTEL_PROPAGATORS', 'OTEL_TRACES_EXPORTER',
  'OTEL_BSP_SCHEDULE_DELAY', 'OTEL_BSP_MAX_QUEUE_SIZE', 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT',
  'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT', 'OTEL_LOG_LEVEL', 'OTEL_SDK_DISABLED', 'OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS'
]

// name → { seeds, run (input, random) }. Targets with `bytes` get a Buffer.
const targets = {
  traceparent: {
    seeds: [`00-${TRACE}-01`, `cc-${TRACE}-03-future`, `00-${TRACE}-01, 00-${TRACE}-01`, `\t 00-${TRACE}-ff `, `00-${'0'.repeat(31)}1-${'0'.repeat(15)}1-00`],
    run: checkTraceparent
  },
  tracestate: {
    seeds: ['foo=1,bar=2', 'tenant@vendor=a b,x=~', ' a=1 ,\t, b=2 ', Array.from({ length: 32 }, (_, i) => `k${i}=v`).join(),
      Array.from({ length: 30 }, (_, i) => `k${i}=${'v'.repeat(i * 8 + 1)}`).join(', ')],
    run: checkTracestate
  },
  baggage: {
    seeds: ['userId=alice,serverNode=DF%2028;region=eu;canary , empty=', 'a=%e2%82%ac;p=%zz', '__proto__=x,constructor=y,k%20=v',
      `a=${'x'.repeat(4090)},b=${'y'.repeat(4000)}`, Array.from({ length: 200 }, (_, i) => `k${i}=${i}`).join()],
    rounds: 1 / 4, // its output is parsed again
    run: checkBaggage
  },
  host: {
    seeds: ['shop.example:8080', '[::1]:3000', 'user@host', '10.0.0.1, 10.0.0.2', 'xn--nxasmq6b.example.'],
    run (text) {
      splitHost(text)
      const headers = { host: text, 'user-agent': text }
      assert.ok(peerInfo({ socket: {}, headers, httpVersion: text }, {}, headers, 16384))
    }
  },
  Forwarded: {
    lengthMax: 4096,
    seeds: ['for=192.0.2.60;proto=http;by=203.0.113.43', 'for="[2001:db8::1]:4711", for=unknown;host="a\\"b"', 'for=1.1.1.1; \t ;', 'for="\\'],
    run (text) {
      const raw = { socket: {}, headers: { forwarded: text, host: 'a' }, httpVersion: '1.1' }
      const peer = forwardedPeerInfo(new ProxiedRequest(raw), {}, 16384)
      assert.ok(peer.clientAddress.length <= 64)
    }
  },
  'X-Forwarded': {
    seeds: ['192.0.2.60, [::1]:80', 'https, http', 'shop.example:8080', 'fe80::1%eth0'],
    run (text) {
      const raw = { socket: {}, headers: { 'x-forwarded-for': text, 'x-forwarded-host': text, 'x-forwarded-proto': text }, httpVersion: '1.1' }
      assert.ok(forwardedPeerInfo(new ProxiedRequest(raw), {}, 16384))
    }
  },
  'the member ot': {
    lengthMax: 8192,
    seeds: ['ot=th:8;rv:6e6d1a75832a2f,foo=1', 'ot=;;th:;th:0', 'foo=1,ot=p:8;r:62'],
    run (text) {
      const tracestate = cleanTracestate(text)
      for (const state of [tracestate, withThreshold(tracestate, '8'), withoutThreshold(tracestate)]) {
        assert.strictEqual(typeof thresholdOf(state) + typeof randomnessOf(state), 'stringstring')
        new TraceState(state).set('a', 'b').unset('ot')
      }
    }
  },
  Accept: {
    seeds: ['application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.5,*/*;q=0.1', 'text/plain;;q=;q'],
    run (text) { assert.strictEqual(typeof negotiate(text), 'string') }
  },
  url: {
    seeds: ['/a/b?x=1&sig=secret', 'http://host/path?q', '*', '//x', '/%zz?X-Amz-Signature=%&AWSAccessKeyId', '/?%73ig=hidden&&='],
    run (text) {
      assert.strictEqual(typeof requestTarget({ url: text }), 'string')
      const redactor = new QueryRedactor(['x'], null)
      const redacted = redactor.redact(text)
      assert.strictEqual(redactor.redact(redacted), redacted)
    }
  },
  'OTLP response': {
    bytes: true,
    seeds: [[0x0a, 4, 0x08, 2, 0x12, 0], [0x0a, 7, 0x08, 0xff, 0x01, 0x12, 2, 0x68, 0x69], [0x10, 1, 0x19, 0, 0, 0, 0, 0, 0, 0, 0]].map((bytes) => Buffer.from(bytes)),
    run (bytes) {
      const read = readPartialSuccess(bytes)
      if (read !== null) assert.ok(typeof read.rejected === 'number' && !Number.isNaN(read.rejected) && read.message.length <= 256)
    }
  },
  'HTTP response': {
    bytes: true,
    seeds: [
      'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-type: text/plain\r\n\r\nhello', 'HTTP/1.0 503\r\nretry-after: 5\r\nconnection: keep-alive\r\n\r\nbusy',
      'HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n'
    ].map((text) => Buffer.from(text)),
    run (bytes, random) {
      const whole = readResponse([bytes])
      const pieces = []
      for (let at = 0, size; at < bytes.length; at += size) {
        size = 1 + Math.floor(random() * Math.max(8, bytes.length / 64))
        pieces.push(bytes.subarray(at, at + size))
      }
      assert.deepStrictEqual(readResponse(pieces), whole)
      assert.ok(whole.code === null || whole.code === 'EBADMSG' || whole.code === 'ECONNRESET', whole.code)
      assert.ok(whole.bodyBytes <= KEPT_BYTES_MAX)
    }
  },
  'chunk to split': {
    bytes: true,
    seeds: [Buffer.concat(Array.from({ length: 3 }, () => Buffer.from([0x12, 0x8c, 0x80, 0x80, 0, 0x0a, 2, 0x0a, 0, 0x12, 2, 0x12, 0, 0x12, 2, 0x12, 0])))],
    run (bytes, random) {
      const halves = halvesOf(bytes, bytes.length, Math.floor(random() * 8))
      if (halves !== null) assert.deepEqual(halves.flatMap((half) => spansOf(half.bytes)), spansOf(bytes))
    }
  },
  'Retry-After': {
    seeds: ['120', 'Sat, 21 Nov 2026 12:00:07 GMT', '-5', '1e308'],
    run (text) {
      const ms = retryAfterMs(text, 1795262400000)
      assert.ok(ms === -1 || (ms >= 100 && ms <= RETRY_AFTER_MAX_MS))
    }
  },
  'text for a log': {
    seeds: ['\u001b[31mred\u001b[0m', 'a\r\nb', '\u202ereversed', '\ud83d\ude00', '\ud83d', '\u009b31m'],
    run (text) {
      const out = printable(text)
      // eslint-disable-next-line no-control-regex
      assert.doesNotMatch(out, /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/)
      assert.ok(out.length <= 256 && out.isWellFormed())
    }
  },
  environment: {
    seeds: ['http://localhost:4318', 'http://user:pass@[::1]:4317/x?y#z', 'a=b,c=%20d', '0.5', '-1', '1e9', 'gzip', 'parentbased_traceidratio', 'true', 'otlp,console'],
    rounds: 1 / 20, // it reads about sixty variables
    run (text, random) {
      const environment = Object.create(null)
      for (let i = 0; i < 4; i++) environment[VARIABLES[Math.floor(random() * VARIABLES.length)]] = text
      const { warnings } = resolveOptions({}, environment)
      assert.ok(Array.isArray(warnings))
    }
  }
}

// Like Fastify's request with trustProxy, whose getters read from `raw`.
class ProxiedRequest {
  constructor (raw) { this.raw = raw }
  get ip () { return this.raw.headers['x-forwarded-for'] }
  get host () { return this.raw.headers['x-forwarded-host'] }
  get protocol () { return this.raw.headers['x-forwarded-proto'] }
}

module.exports = { targets, fuzz, randomFrom, mutateText, longInputs }

function readResponse (pieces) {
  const response = new HttpResponse()
  let code = null
  try {
    for (const piece of pieces) response.push(piece)
    response.end()
  } catch (error) {
    code = error.code ?? `${error}`
  }
  const { status, isComplete, isOversized, isKeptAlive, body } = response
  return { code, status, isComplete, isOversized, isKeptAlive, bodyBytes: body.length, body: body.toString('latin1', 0, 100) }
}

// Throws an error that shows the failing input.
function fuzz (name, rounds, seed) {
  const { seeds, run, bytes = false, rounds: part = 1 } = targets[name]
  const random = randomFrom(seed)
  for (let round = 0; round < rounds * part; round++) {
    const start = seeds[Math.floor(random() * seeds.length)]
    const input = bytes ? mutateBytes(start, random) : mutateText(start, random)
    try {
      run(input, random)
    } catch (error) {
      error.message = `${name}, seed ${seed}, round ${round}, input ${JSON.stringify(bytes ? input.toString('hex') : input)}: ${error.message}`
      throw error
    }
  }
}

const NASTY = ['', ' ', '\t', ',', ';', '=', '%', '%00', '%ff', '-', '--', '.', ':', '/', '//', '?', '#', '@', '[', ']', '"', '\\', '\0', '\r\n', '\u001b[',
  '\u00ff', '\u0130', '\u202e', '\ud800', '\udfff', '\ufeff', '__proto__', 'constructor', '0'.repeat(40), 'f', 'F', '9'.repeat(30), 'e9', 'x'.repeat(300)]

function mutateText (text, random) {
  for (let i = Math.floor(random() * 6); i >= 0; i--) {
    const at = Math.floor(random() * (text.length + 1))
    const to = at + Math.floor(random() * 8)
    const nasty = random() < 0.5 ? NASTY[Math.floor(random() * NASTY.length)] : String.fromCharCode(Math.floor(random() * 0x300))
    const kind = random()
    if (kind < 0.5) text = text.slice(0, at) + nasty + text.slice(to)
    else if (kind < 0.7) text = text.slice(0, at) + text.slice(to)
    else if (kind < 0.9) text = text.slice(0, at) + text.slice(0, to) + text.slice(at)
    else text = text.slice(0, at) + nasty.repeat(1 + Math.floor(random() * 50)) + text.slice(at)
  }
  return text.slice(0, 20_000)
}

function mutateBytes (start, random) {
  const bytes = Buffer.concat([start, random() < 0.3 ? start : Buffer.alloc(0)])
  for (let i = Math.floor(random() * 4); i >= 0; i--) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
  return random() < 0.5 ? bytes : bytes.subarray(0, Math.floor(random() * bytes.length))
}

// Inputs that make a quadratic parser slow: one piece, repeated many times.
function longInputs (name, length) {
  const { seeds, bytes = false } = targets[name]
  if (bytes) return [...seeds, Buffer.from([0x10]), Buffer.from([0x80]), Buffer.from([0x0a, 0])].map((piece) => Buffer.alloc(length, piece))
  const pieces = [...seeds, ...NASTY].filter((piece) => piece !== '').map((piece) => piece.repeat(Math.ceil(length / piece.length)).slice(0, length))
  return pieces.flatMap((piece) => [piece, `${piece.slice(0, -1)}"`, `${piece.slice(0, -1)}\0`]) // and variants with an error at the end
}

/** Returns the spans of a chunk, as bytes. An empty scope_spans has none. */
function spansOf (bytes) {
  const reader = Reader.create(bytes)
  const spans = []
  while (reader.pos < reader.len) {
    reader.uint32()
    for (const end = reader.uint32() + reader.pos; reader.pos < end;) {
      const tag = reader.uint32()
      const field = reader.bytes()
      if (tag === 0x12) spans.push(Buffer.from(field).toString('hex'))
    }
  }
  return spans
}
