'use strict'

// Possible answers of the collector, and what happens to the spans.

const { test } = require('tap')
const zlib = require('node:zlib')
const dc = require('node:diagnostics_channel')
const { startFakeCollector } = require('../support/fake-collector')
const { startExporter } = require('../support/chunk-writer')

Math.random = () => 0 // each wait is as short as possible

async function sendThree (t, script, options) {
  const collector = await startFakeCollector(t)
  collector.script = script
  const subject = startExporter(t, { url: collector.url, ...options })
  subject.write(3)
  await subject.exporter.flush()
  t.equal(subject.identity(), 0)
  return { collector, ...subject }
}

function losses (logged) {
  return logged.filter(({ code }) => code === 'loss').map(({ message }) => message)
}

// T12, T13, T28
for (const status of [400, 401, 403, 404, 405, 407, 408, 415, 422, 500, 501, 505, 507]) {
  test(`${status} is not retried, and the loss is counted and logged`, async (t) => {
    const { collector, stats, logged } = await sendThree(t, [{ status }])
    t.equal(collector.requests.length, 1)
    t.strictSame({ ...stats.dropped }, { non_retryable: 3 })
    t.equal(stats.exportsFailed, 1)
    t.equal(losses(logged).length, 1)
    t.match(losses(logged)[0], `${status}`)
    t.match(stats.lastError, `${status}`)
  })
}

// T16
for (const status of [301, 302, 303, 307, 308]) {
  test(`${status} is not followed`, async (t) => {
    const elsewhere = await startFakeCollector(t)
    const { collector, stats } = await sendThree(t, [{ status, headers: { location: elsewhere.url } }])
    t.equal(elsewhere.connections, 0)
    t.equal(collector.requests.length, 1)
    t.equal(stats.dropped.non_retryable, 3)
  })
}

// T14
for (const status of [429, 502, 503, 504]) {
  test(`${status} is retried until it succeeds`, async (t) => {
    const { collector, stats, logged } = await sendThree(t, [{ status }, { status }, { status: 200 }])
    t.equal(collector.requests.length, 3)
    t.equal(stats.delivered, 3)
    t.equal(stats.retried, 6)
    t.strictSame({ ...stats.dropped }, {})
    t.equal(losses(logged)[0].includes('3 spans buffered for retry'), true)
    t.match(logged.at(-1), { code: 'recovered', message: /; 0 spans lost/ })
  })
}

// T15
test('Retry-After is honoured, also by a flush', async (t) => {
  const { collector, stats } = await sendThree(t, [{ status: 503, headers: { 'retry-after': '1' } }, { status: 200 }])
  t.ok(collector.requests[1].at - collector.requests[0].at > 990)
  t.equal(stats.delivered, 3)
})

test('a hostile Retry-After causes neither a standstill nor a flood', async (t) => {
  for (const value of ['0', '-5', '1e308', 'abc', 'Thu, 01 Jan 1970 00:00:00 GMT']) {
    const { collector, stats } = await sendThree(t, [{ status: 503, headers: { 'retry-after': value } }, { status: 200 }])
    t.equal(collector.requests.length, 2)
    t.ok(collector.requests[1].at - collector.requests[0].at > 90, value)
    t.equal(stats.delivered, 3)
  }
  for (const value of ['86400', 'Fri, 31 Dec 9999 23:59:59 GMT']) {
    const { exporter, stats } = await sendThree(t, [{ status: 503, headers: { 'retry-after': value } }, { status: 200 }], { closeTimeoutMs: 300 })
    t.equal(exporter.queued, 3, 'it still waits')
    await exporter.close()
    t.equal(stats.delivered, 3, 'a close does not wait')
  }
})

// T17
for (const status of [200, 202, 204, 206, 299]) {
  test(`${status} is a delivery`, async (t) => {
    const { stats } = await sendThree(t, [{ status }])
    t.equal(stats.delivered, 3)
  })
}

test('an interim answer does not count as the answer', async (t) => {
  const raw = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
  const { stats } = await sendThree(t, [{ raw }])
  t.equal(stats.delivered, 3)
})

test('a change of protocol without a request for it is retried like a reset', async (t) => {
  const raw = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: nothing\r\n\r\n'
  const { stats } = await sendThree(t, [{ raw }, { status: 200 }])
  t.equal(stats.delivered, 3)
  t.equal(stats.retried, 3)
})

// T18
test('a partial success is counted on both sides and not sent again', async (t) => {
  const { collector, stats, logged } = await sendThree(t, [{ partialSuccess: { rejectedSpans: 2, errorMessage: 'too\r\nold\u001b[31m' } }])
  t.equal(collector.requests.length, 1)
  t.equal(stats.delivered, 1)
  t.equal(stats.rejected, 2)
  t.equal(losses(logged).length, 1)
  t.match(losses(logged)[0], /rejected 2 spans: too {1,2}old$/)
})

// T19
test('a message without a rejection is only logged', async (t) => {
  const { stats, logged } = await sendThree(t, [{ partialSuccess: { rejectedSpans: 0, errorMessage: 'use https' } }])
  t.equal(stats.delivered, 3)
  t.equal(stats.rejected, 0)
  t.match(logged, [{ code: 'LT_WARN_COLLECTOR', message: /use https$/ }])
})

// T20
test('the count of rejected spans is limited to between 0 and the number sent', async (t) => {
  for (const [rejectedSpans, rejected] of [[4, 3], ['9223372036854775807', 3], [-1, 0], ['-9223372036854775808', 0]]) {
    const { stats } = await sendThree(t, [{ partialSuccess: { rejectedSpans: BigInt(rejectedSpans).toString(), errorMessage: 'x' } }].map(asLong))
    t.equal(stats.rejected, rejected, `${rejectedSpans}`)
    t.equal(stats.delivered, 3 - rejected)
  }
})

function asLong ({ partialSuccess }) {
  const bits = BigInt.asUintN(64, BigInt(partialSuccess.rejectedSpans))
  return { partialSuccess: { ...partialSuccess, rejectedSpans: { low: Number(bits & 0xffffffffn) | 0, high: Number(bits >> 32n) | 0, unsigned: false } } }
}

// T21
test('a 200 is a delivery if its body is OTLP\'s: empty, protobuf or a JSON object', async (t) => {
  const bodies = [
    {},
    { headers: { 'content-type': 'text/html' } },
    { body: '{"partialSuccess":{}}', headers: { 'content-type': 'application/json' } },
    { body: '{}', headers: { 'content-type': 'application/json; charset=utf-8' } },
    { body: Buffer.alloc(60_000, 0xff) },
    { body: Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f]) },
    { raw: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}' },
    { raw: 'HTTP/1.1 204 No Content\r\n\r\n' }
  ]
  for (const how of bodies) {
    const { stats, logged } = await sendThree(t, [how])
    t.equal(stats.delivered, 3)
    t.equal(stats.lastError, null)
    t.strictSame(logged, [])
  }
})

test('a partial success in JSON counts like one in protobuf', async (t) => {
  for (const body of ['{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}', '{"partial_success":{"rejected_spans":2,"error_message":"too old"}}']) {
    const { stats, logged } = await sendThree(t, [{ body, headers: { 'content-type': 'application/json' } }])
    t.equal(stats.delivered, 1)
    t.equal(stats.rejected, 2)
    t.match(losses(logged)[0], /rejected 2 spans: too old/)
  }
})

test('a web page is not a success: its spans are rejected, and it is logged at once with the likely fix', async (t) => {
  for (const how of [
    { body: '<!doctype html><title>Jaeger UI</title>', headers: { 'content-type': 'text/html; charset=utf-8' } },
    { body: '\n <HTML>welcome</HTML>', headers: { 'content-type': 'text/plain' } },
    { raw: 'HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>' }
  ]) {
    const { stats, logged, identity } = await sendThree(t, [how])
    t.equal(stats.delivered, 0)
    t.equal(stats.rejected, 3)
    t.equal(stats.exportsFailed, 1)
    t.equal(identity(), 0)
    t.match(stats.lastError, /HTTP status 200; the answer is a web page: OTLP over HTTP usually uses port 4318/)
    t.match(losses(logged), [/is not an OTLP receiver: 3 spans lost .*web page/])
  }
})

test('a 200 with a body of another type is a delivery with a warning', async (t) => {
  for (const how of [
    { body: 'ok', headers: { 'content-type': 'text/plain' } },
    { body: '[]', headers: { 'content-type': 'application/json' } },
    { body: 'no json', headers: { 'content-type': 'application/json' } },
    { body: 'a,b', headers: { 'content-type': 'text/csv' } }
  ]) {
    const { stats, logged } = await sendThree(t, [how])
    t.equal(stats.delivered, 3)
    t.match(logged, [{ code: 'LT_WARN_RESPONSE_TYPE' }])
  }
})

test('lastError has the message of the failed answer', async (t) => {
  const status = Buffer.concat([Buffer.from([0x08, 16, 0x12, 9]), Buffer.from('bad token')]) // google.rpc.Status
  for (const [how, expected] of [
    [{ status: 401, body: 'bad token', headers: { 'content-type': 'text/plain' } }, 'HTTP status 401: bad token'],
    [{ status: 401, body: status }, 'HTTP status 401: bad token'],
    [{ status: 401, body: '{"error":"bad token"}', headers: { 'content-type': 'application/json' } }, 'HTTP status 401: {"error":"bad token"}'],
    [{ raw: 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 9\r\n\r\nbad token' }, 'HTTP status 401: bad token'],
    [{ status: 403, body: Buffer.from([0x12, 0xff, 0xff]) }, 'HTTP status 403'],
    [{ status: 404, body: '<html>Grafana</html>', headers: { 'content-type': 'text/html' } }, /^HTTP status 404; the answer is a web page/],
    [{ status: 415, headers: { 'content-type': 'application/grpc' } }, /^HTTP status 415; OTLP over HTTP usually uses port 4318; 4317 is gRPC/]
  ]) {
    const { stats } = await sendThree(t, [how])
    t.match(stats.lastError, expected)
    t.equal(stats.dropped.non_retryable, 3)
  }
})

// T12
test('a 413 splits the request at once, down to what the collector accepts, even if it was compressed', async (t) => {
  const limit = 40_000
  for (const isCompressed of [false, true]) {
    const collector = await startFakeCollector(t)
    await collector.down()
    const maxBytes = 1024 * 1024
    const { exporter, stats, write, identity } = startExporter(t, { url: collector.url, buffer: { maxBytes, flushDelayMs: 10 } })
    write(1500, 400, isCompressed)
    if (isCompressed) await collector.until(() => exporter.bufferBytes < maxBytes / 2)
    collector.script = (request) => ({ status: Number(request.headers['content-length']) > limit || request.headers['content-encoding'] === 'gzip' ? 413 : 200 })
    await collector.up()
    await exporter.flush()
    await collector.until(() => stats.delivered === 1500)
    t.equal(identity(), 0)
    t.same({ ...stats.dropped }, {})
    t.equal(collector.delivered.size, 1500)
    if (isCompressed) t.ok(collector.requests.some(({ headers }) => headers['content-encoding'] === 'gzip'))
    await exporter.close()
  }
})

// T22
for (const [what, how] of [['an endless answer', { trickle: { bytes: 1024 * 1024, everyMs: 1 } }], ['an answer of 16 MiB', { body: Buffer.alloc(16 * 1024 * 1024) }]]) {
  test(`${what} is a permanent failure, and 4 MiB of it are read before the connection is closed`, async (t) => {
    let socket = null
    const onSocket = (message) => { socket = message.socket } // the last is the exporter's: the collector's port is held by one before
    dc.subscribe('net.client.socket', onSocket)
    t.teardown(() => dc.unsubscribe('net.client.socket', onSocket))
    const { collector, stats, logged, exporter } = await sendThree(t, [how])
    t.equal(stats.delivered, 0)
    t.equal(stats.dropped.non_retryable, 3)
    t.match(losses(logged)[0], /refused 3 spans, which are dropped \(HTTP status 200: its answer is longer than 4 MiB\)/)
    t.ok(socket.bytesRead > 4 * 1024 * 1024 && socket.bytesRead <= 5 * 1024 * 1024, `${socket.bytesRead} bytes`)
    await collector.until(() => collector.sockets.size === 0)
    await exporter.close()
  })
}

test('a partial success in JSON with a message of a megabyte is counted', async (t) => {
  const body = JSON.stringify({ partialSuccess: { rejectedSpans: '2', errorMessage: '.'.repeat(1024 * 1024) } })
  const { stats } = await sendThree(t, [{ headers: { 'content-type': 'application/json' }, body }])
  t.match(stats, { delivered: 1, rejected: 2 })
})

test('a partial success with a message of a megabyte is counted', async (t) => {
  const { stats, logged } = await sendThree(t, [{ partialSuccess: { rejectedSpans: 2, errorMessage: `too old${'.'.repeat(1024 * 1024)}` } }])
  t.equal(stats.delivered, 1)
  t.equal(stats.rejected, 2)
  t.match(losses(logged)[0], /rejected 2 spans: too old/)
})

for (const [type, begun] of Object.entries({
  'application/json': '{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too o',
  'application/x-protobuf': '\x0a\x20\x08\x02\x12\x1ctoo o'
})) {
  test(`a partial success in ${type} is counted even if only the number has arrived`, async (t) => {
    const raw = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: 300\r\n\r\n${begun}`
    const { stats } = await sendThree(t, [{ raw }], { exporter: { timeoutMs: 200 } })
    t.match(stats, { delivered: 1, rejected: 2 })
  })
}

test('an endless body of a failed answer is a failure', async (t) => {
  const { stats } = await sendThree(t, [{ status: 400, trickle: { bytes: 1024 * 1024, everyMs: 1 } }])
  t.equal(stats.dropped.non_retryable, 3)
})

test('a compressed answer is not decompressed', async (t) => {
  for (const name of ['createGunzip', 'gunzip', 'createUnzip', 'unzip']) replace(t, name, () => t.fail('inflates'))
  const bomb = zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024))
  const { collector, stats } = await sendThree(t, [{ body: bomb, headers: { 'content-encoding': 'gzip' } }])
  t.equal(stats.delivered, 3)
  t.equal(collector.requests[0].headers['accept-encoding'], 'identity')
})

// T07
test('an answer whose body never ends counts by its status when the time is over', async (t) => {
  const options = { exporter: { timeoutMs: 200 } }
  const delivered = await sendThree(t, [{ trickle: { bytes: 1, everyMs: 10 } }], options)
  t.equal(delivered.stats.delivered, 3)
  t.equal(delivered.stats.retried, 0)
  const retried = await sendThree(t, [{ status: 503, trickle: { bytes: 1, everyMs: 10 } }, { status: 200 }], options)
  t.equal(retried.stats.delivered, 3)
  t.equal(retried.stats.retried, 3)
})

// T23, P11
const malformed = {
  'bytes that are no HTTP': 'SSH-2.0-OpenSSH_9.9\r\n\r\n',
  'an HTTP/2 preface': '\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0d\0\x04\0\0\xff\xff\0\x06\0\0@\0',
  'headers without end': `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`,
  'two lengths': 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  'a header with a control character': 'HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n'
}
for (const [what, raw] of Object.entries(malformed)) {
  test(`an answer of ${what} is a failed connection`, async (t) => {
    const { stats, logged } = await sendThree(t, [{ raw }, { status: 200 }])
    t.equal(stats.delivered, 3)
    t.equal(stats.retried, 3)
    if (what.includes('HTTP/2')) t.match(losses(logged)[0], /4317 is gRPC/)
  })
}

// T31
test('a server that closes after each answer gets one connection per request, and none stays open', async (t) => {
  for (const how of [{ headers: { connection: 'close' } }, { raw: 'HTTP/1.0 200 OK\r\n\r\n', closeAfterAnswer: true }]) {
    const { collector, stats, exporter, write, identity } = await sendThree(t, [how])
    for (let i = 0; i < 5; i++) {
      write(1)
      await exporter.flush()
    }
    t.equal(stats.delivered, 8)
    t.equal(stats.retried, 0)
    t.equal(identity(), 0)
    t.equal(collector.connections, 6)
    await collector.until(() => collector.sockets.size === 0)
  }
})

// T32
test('an answer that arrives before the body was read counts once', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 503, early: true }, { status: 503, early: true }, { status: 200 }]
  const { exporter, stats, write, identity } = startExporter(t, { url: collector.url })
  write(8000, 400)
  await exporter.flush({ timeoutMs: 20_000 })
  t.equal(identity(), 0)
  t.equal(stats.delivered, 8000)
  t.equal(collector.delivered.size, 8000)
  t.equal(stats.exportsFailed, 2)
})

test('a delivery with an early answer does not reuse memory that is still being sent', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 200, early: true, keepOpen: true, readEveryMs: 1 }, { status: 200 }]
  const { exporter, stats, write, identity } = startExporter(t, { url: collector.url })
  for (let i = 0; i < 5; i++) {
    write(5000, 400)
    await exporter.flush()
  }
  t.equal(identity(), 0)
  t.equal(stats.delivered, 25_000)
  t.strictSame(collector.duplicates, [])
})

// T33
test('without memory for compression, spans are sent uncompressed', async (t) => {
  replace(t, 'gzip', () => { throw new RangeError('zlib: no memory') })
  const { collector, stats } = await sendThree(t, [{ status: 200 }], { exporter: { compression: 'gzip' } })
  t.equal(stats.delivered, 3)
  t.notOk(collector.requests[0].headers['content-encoding'])
})

function replace (t, name, value) {
  const original = Object.getOwnPropertyDescriptor(zlib, name)
  Object.defineProperty(zlib, name, { ...original, value })
  t.teardown(() => Object.defineProperty(zlib, name, original))
}
