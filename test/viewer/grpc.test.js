'use strict'

// OTLP over gRPC. test/senders has the SDKs of three languages; here each frame is ours.

const http2 = require('node:http2')
const net = require('node:net')
const { once } = require('node:events')
const { Readable } = require('node:stream')
const { deflateSync, gzipSync } = require('node:zlib')
const { test } = require('tap')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { startViewer, spansOf, traceId } = require('./support')
const { runApp, runCommand, eventually } = require('./command')
const { encodeRequest } = require('../support/otlp-encode')
const { Bodies } = require('../../viewer/http/body')
const { Grpc } = require('../../viewer/http/grpc')
const { parseArguments } = require('../../viewer/commands/arguments')
const { listenForGrpc } = require('../../viewer/commands/port')
const { ProtoReader } = require('../../viewer/otlp/proto-reader')

const MIB = 1024 * 1024
const [TRACES, METRICS, LOGS] = ['trace.v1.Trace', 'metrics.v1.Metrics', 'logs.v1.Logs'].map((name) => `/opentelemetry.proto.collector.${name}Service/Export`)
const OK = 0
const INVALID_ARGUMENT = 3
const PERMISSION_DENIED = 7
const RESOURCE_EXHAUSTED = 8
const UNIMPLEMENTED = 12
const INTERNAL = 13
const UNAVAILABLE = 14

const body = encodeRequest(spansOf([{ name: 'good' }]))

function framed (bytes, flag = 0, length = bytes.length) {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(length, 1)
  return Buffer.concat([prefix, bytes])
}

/** A viewer that takes gRPC, and a client of it. */
async function start (t, { limits, ...options } = {}) {
  const started = await startViewer(t, options)
  const { viewer } = started
  const grpc = new Grpc(viewer.receiver, viewer.bodies, () => started.port, limits)
  const port = await grpc.listen(0)
  viewer.grpc = grpc
  return { ...started, grpc, httpPort: started.port, port, client: clientOf(t, port), refused: () => viewer.stats().refused.reasons }
}

function clientOf (t, port, host = '127.0.0.1') {
  const session = http2.connect(`http://${host}:${port}`, { maxSessionMemory: 1000 })
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  const open = (path = TRACES, headers = {}) => {
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', ...headers })
    stream.on('error', () => {})
    return stream
  }
  return { session, open, call: (chunks, { path, headers, isOpen = false } = {}) => callOn(open(path, headers), chunks, isOpen) }
}

/** @returns {Promise<{ http, code, message, body, headers, hasTrailers, reset }>} */
async function callOn (stream, chunks, isOpen) {
  const answer = { body: Buffer.alloc(0), hasTrailers: false }
  const status = (headers) => Object.assign(answer, { code: Number(headers['grpc-status']), message: headers['grpc-message'] })
  stream.on('response', (headers) => {
    Object.assign(answer, { http: headers[':status'], headers })
    if (headers['grpc-status'] !== undefined) status(headers)
  })
  stream.on('trailers', (headers) => { status(headers).hasTrailers = true })
  stream.on('data', (piece) => { answer.body = Buffer.concat([answer.body, piece]) })
  for (const chunk of chunks) stream.write(chunk)
  if (!isOpen) stream.end()
  await new Promise((resolve) => stream.on('close', resolve))
  return Object.assign(answer, { reset: stream.rstCode })
}

test('the same request gives the same over gRPC as over HTTP', async (t) => {
  const { client, json, refused } = await start(t)
  const answer = await client.call([framed(body)])
  t.match(answer, { http: 200, code: OK, hasTrailers: true, message: undefined, headers: { 'content-type': 'application/grpc' } })
  t.same(answer.body, framed(Buffer.alloc(0)), 'an ExportTraceServiceResponse without a partial success')
  t.match((await json('/api/traces')).traces, [{ id: traceId(1), name: 'good' }])
  t.match(await json(`/api/traces/${traceId(1)}`), { resourceSpans: [{ scopeSpans: [{ spans: [{ name: 'good' }] }] }] })

  const { ExportLogsServiceRequest } = opentelemetry.proto.collector.logs.v1
  const logs = ExportLogsServiceRequest.encode({ resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'a line' } }] }] }] }).finish()
  t.match(await client.call([framed(logs)], { path: LOGS }), { code: OK, hasTrailers: true })
  t.match((await json('/api/logs')).lines, [{ text: 'a line' }])
  t.match(await client.call([framed(Buffer.alloc(0))], { path: METRICS }), { code: OK, hasTrailers: true })
  t.match((await json('/api/stats')), { received: { requests: 1, spans: 1, logs: 1, metrics: 1 }, grpc: { connections: 1, messages: 3 } })
  t.same(refused(), {})
})

test('a message is read in any compression, content type and size of pieces', async (t) => {
  const { client, json } = await start(t)
  let trace = 0
  const next = () => encodeRequest(spansOf([{ trace: ++trace }]))
  const ways = {
    'with gzip': () => client.call([framed(gzipSync(next()), 1)], { headers: { 'grpc-encoding': 'gzip' } }),
    'with deflate': () => client.call([framed(deflateSync(next()), 1)], { headers: { 'grpc-encoding': 'deflate' } }),
    'not compressed, though it could be': () => client.call([framed(next())], { headers: { 'grpc-encoding': 'gzip' } }),
    'as application/grpc+proto': () => client.call([framed(next())], { headers: { 'content-type': 'application/grpc+proto' } }),
    'byte by byte': () => client.call([...framed(next())].map((byte) => Buffer.from([byte]))),
    'in an instant': () => client.call([framed(next())], { headers: { 'grpc-timeout': '1n' } }),
    'by a page of localhost': () => client.call([framed(next())], { headers: { origin: 'http://localhost:3000' } })
  }
  for (const [way, send] of Object.entries(ways)) t.match(await send(), { code: OK }, way)
  t.equal((await json('/api/traces')).total, Object.keys(ways).length)
})

test('the sender is told what was dropped', async (t) => {
  const { client } = await start(t)
  const span = spansOf([{}, {}])
  span.resourceSpans[0].scopeSpans[0].spans[1].spanId = Buffer.alloc(8)
  const { code, body: answer } = await client.call([framed(encodeRequest(span))])
  t.equal(code, OK)
  const { partialSuccess } = opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse.decode(answer.subarray(5))
  t.match([Number(partialSuccess.rejectedSpans), partialSuccess.errorMessage], [1, /without valid ids/])

  const { ExportMetricsServiceRequest, ExportMetricsServiceResponse } = opentelemetry.proto.collector.metrics.v1
  const metrics = ExportMetricsServiceRequest.encode({ resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name: 'load', gauge: { dataPoints: [{ timeUnixNano: 1, asDouble: NaN }] } }] }] }] }).finish()
  const ofMetrics = ExportMetricsServiceResponse.decode((await client.call([framed(metrics)], { path: METRICS })).body.subarray(5)).partialSuccess
  t.match([Number(ofMetrics.rejectedDataPoints), ofMetrics.errorMessage], [1, /not finite/])
})

test('every wrong call has its status, and is counted', async (t) => {
  const { client, refused, viewer } = await start(t)
  const gzip = { 'grpc-encoding': 'gzip' }
  const wrong = [
    ['malformed', INVALID_ARGUMENT, [framed(Buffer.from([0xff, 0xff, 0xff]))], {}, /number does not end/],
    ['malformed', INVALID_ARGUMENT, [framed(Buffer.from('no gzip'), 1)], { headers: gzip }, /not gzip/],
    ['malformed', INVALID_ARGUMENT, [framed(body).subarray(0, -1)], {}, /incomplete/],
    ['malformed', INVALID_ARGUMENT, [framed(body).subarray(0, 4)], {}, /incomplete/],
    ['malformed', INVALID_ARGUMENT, [framed(body, 2)], {}, /flag 2/],
    ['malformed', UNIMPLEMENTED, [], {}, /exactly one message/],
    ['malformed', UNIMPLEMENTED, [framed(body), framed(body)], {}, /exactly one message/],
    ['malformed', UNIMPLEMENTED, [Buffer.concat([framed(body), Buffer.from([0])])], { isOpen: true }, /exactly one message/],
    ['encoding', UNIMPLEMENTED, [framed(body, 1)], { headers: { 'grpc-encoding': 'br%' } }, /^grpc-encoding br%25 is not understood/],
    ['encoding', INTERNAL, [framed(body, 1)], {}, /does not say how/],
    ['too_large', RESOURCE_EXHAUSTED, [framed(body, 0, 64 * MIB)], { isOpen: true }, /64 MiB/],
    ['too_large', RESOURCE_EXHAUSTED, [framed(body, 0, 2 ** 32 - 1)], {}, /64 MiB/],
    ['method', UNIMPLEMENTED, [framed(body)], { path: '/grpc.health.v1.Health/Check' }, /TraceService/],
    ['method', UNIMPLEMENTED, [framed(body)], { path: '/v1/traces' }, /TraceService/],
    ['method', UNIMPLEMENTED, [framed(body)], { path: '/constructor' }, /TraceService/],
    ['method', UNIMPLEMENTED, [], { headers: { ':method': 'GET' } }, /TraceService/],
    ['origin', PERMISSION_DENIED, [framed(body)], { headers: { origin: 'https://evil.example' } }, /only pages of localhost/],
    ['origin', PERMISSION_DENIED, [framed(body)], { headers: { origin: 'null' } }, /only pages of localhost/]
  ]
  const counts = {}
  for (const [reason, code, chunks, options, message] of wrong) {
    const answer = await client.call(chunks, options)
    t.match(answer, { http: 200, code, message, hasTrailers: false, reset: 0, headers: { 'content-type': 'application/grpc', 'grpc-accept-encoding': /^identity,gzip/ } }, String(message))
    t.notOk('grpc-status-details-bin' in answer.headers, 'nothing of it is to be sent again')
    counts[reason] = (counts[reason] ?? 0) + 1
  }
  t.same(refused(), counts)
  for (const type of ['application/x-protobuf', 'application/grpc-web', 'application/grpc+json', 'text/plain', '']) {
    const answer = await client.call([framed(body)], { headers: { 'content-type': type } })
    t.match([answer.http, answer.headers['content-type'], answer.body.toString()], [415, /text\/plain/, /application\/grpc/], type)
  }
  t.equal(refused().media_type, 5)
  t.match(await client.call([framed(body)]), { code: OK }, 'goes on')
  t.equal(viewer.stats().traces, 1)
})

test('a fault of the viewer is answered', async (t) => {
  const { client, viewer } = await start(t)
  viewer.store.receive = () => { throw new TypeError('a bug') }
  const printed = []
  const { write } = process.stderr
  process.stderr.write = (text) => printed.push(text)
  t.teardown(() => { process.stderr.write = write })
  t.match(await client.call([framed(body)]), { code: INTERNAL, message: 'the viewer failed: its terminal shows why' })
  process.stderr.write = write
  t.match(printed, [/TypeError: a bug/])
})

test('bodies that are too large before or after decompression are refused', async (t) => {
  const { client, refused } = await start(t)
  const bomb = gzipSync(Buffer.alloc(200 * MIB), { level: 9 })
  const before = process.memoryUsage().rss
  const answers = await Promise.all(Array.from({ length: 8 }, () => client.call([framed(bomb, 1)], { headers: { 'grpc-encoding': 'gzip' } })))
  t.same(answers.map(({ code }) => code), Array(8).fill(RESOURCE_EXHAUSTED))
  t.ok(process.memoryUsage().rss - before < 400 * MIB, 'and not all of them at once')
  t.same(refused(), { too_large: 8 })
  t.match(await client.call([framed(body)]), { code: OK }, 'goes on')
})

test('a sender is asked to retry while too much is being received', async (t) => {
  const { port, refused } = await start(t)
  // Two messages that have all but ended, and a third one.
  const clients = [1, 2, 3].map(() => clientOf(t, port))
  const streams = clients.map(({ open }) => open())
  const answers = streams.map((stream) => callOn(stream, [], true))
  const almost = Buffer.alloc(60 * MIB)
  for (const stream of streams.slice(0, 2)) {
    stream.write(framed(Buffer.alloc(0), 0, 60 * MIB + 1))
    await new Promise((resolve) => stream.write(almost, resolve))
  }
  streams[2].write(framed(Buffer.alloc(0), 0, 32 * MIB))
  streams[2].write(Buffer.alloc(32 * MIB))
  const answer = await Promise.race(answers)
  t.match(answer, { code: UNAVAILABLE, message: /receiving too much data/ })
  t.same(statusOf(answer), { code: UNAVAILABLE, message: 'the viewer is receiving too much data. Try again later', type: 'type.googleapis.com/google.rpc.RetryInfo', seconds: 1 })
  for (const { session } of clients) session.destroy()
  await eventually(refused, ({ aborted }) => aborted === 2)
  const client = clientOf(t, port)
  t.match(await client.call([framed(body)]), { code: OK }, 'there is room again')
})

// google.rpc.Status and its first detail
function statusOf ({ headers }) {
  const fields = (bytes) => {
    const reader = new ProtoReader(bytes)
    const found = {}
    for (let field = reader.next(); field !== 0; field = reader.next()) found[field] = reader.wire === 0 ? reader.number() : bytes.subarray(reader.from, reader.to)
    return found
  }
  const { 1: code, 2: message, 3: any } = fields(Buffer.from(headers['grpc-status-details-bin'], 'base64'))
  const { 1: type, 2: info } = fields(any)
  return { code, message: String(message), type: String(type), seconds: fields(fields(info)[1])[1] }
}

test('pieces of one byte count as the memory that they use', async (t) => {
  const bytes = Readable.from((function * () { for (let i = 0; i < MIB; i++) yield Buffer.from([0]) })(), { objectMode: false })
  await t.rejects(new Bodies().receive(bytes, (whole) => ({ bytes: whole, encoding: 'identity' })), { reason: 'busy' }, 'a million of them')
})

test('1,000 calls at once over one connection are taken', async (t) => {
  const { client, viewer } = await start(t)
  const answers = await Promise.all(Array.from({ length: 1000 }, (_, i) => client.call([framed(encodeRequest(spansOf([{ trace: i + 1 }])))])))
  t.ok(answers.every(({ code }) => code === OK))
  t.equal(viewer.stats().traces, 1000)
})

test('open calls are limited, in all connections and in one', async (t) => {
  const { port, client, refused } = await start(t)
  await client.call([framed(body)])
  const answers = []
  for (let i = 0; i < 12; i++) {
    const { open } = clientOf(t, port)
    for (let j = 0; j < 100; j++) answers.push(callOn(open(), [], true))
  }
  await eventually(refused, ({ busy }) => busy === 200)
  const { session, open } = clientOf(t, port)
  await once(session, 'remoteSettings')
  t.equal(session.remoteSettings.maxConcurrentStreams, 100)
  t.match(await callOn(open(), [framed(body)], false), { code: UNAVAILABLE, message: 'too many calls' })
})

// Repeats, because a busy machine may not end even a small call within a limit of the test.
function answersAgain (client) {
  return eventually(() => client.call([framed(body)]), ({ code }) => code === OK)
}

test('a call that does not end is ended', async (t) => {
  const { client, refused, grpc } = await start(t, { limits: { callMs: 100 } })
  const answer = await client.call([framed(body).subarray(0, 20)], { isOpen: true })
  t.match([answer.http, answer.reset], [undefined, http2.constants.NGHTTP2_CANCEL])
  await eventually(refused, ({ aborted }) => aborted === 1)
  t.equal(grpc.stats().connections, 1)
  await answersAgain(client) // within 100 ms, unless the machine is busy
})

test('a connection that is not used is closed with a GOAWAY', async (t) => {
  const { client: { session }, grpc } = await start(t, { limits: { idleMs: 100 } })
  const [code] = await once(session, 'goaway')
  t.equal(code, http2.constants.NGHTTP2_NO_ERROR)
  await eventually(() => grpc.stats(), ({ connections }) => connections === 0)
})

test('the viewer closes while calls are open', async (t) => {
  const { client, viewer } = await start(t, { limits: { closingMs: 50 } })
  const goodbye = once(client.session, 'goaway')
  await client.call([framed(body)])
  const call = client.call([framed(body).subarray(0, 20)], { isOpen: true })
  const silent = net.connect(viewer.grpc.port, '127.0.0.1')
  await eventually(() => viewer.stats().grpc, ({ connections }) => connections === 2)
  await viewer.close()
  t.match(await goodbye, [http2.constants.NGHTTP2_NO_ERROR])
  t.equal((await call).http, undefined)
  await (silent.destroyed || once(silent, 'close'))
})

test('HTTP/1.1 gets a text with the right address, and any other protocol is disconnected', async (t) => {
  const { port, httpPort, refused, client, grpc } = await start(t)
  const text = `This port is for OTLP over gRPC. Send OTLP over HTTP to port ${httpPort}.\n`
  for (const init of [{}, { method: 'POST', body: body.toString('latin1') }, { method: 'PRI' }, { method: 'POST', body: 'x'.repeat(MIB) }]) {
    const response = await fetch(`http://127.0.0.1:${port}/v1/traces`, init)
    t.match([response.status, await response.text()], [404, text], init.method)
    t.equal(response.headers.get('access-control-allow-origin'), null)
  }
  for (const start of ['GET / HTTP/1.0\r\n\r\n', 'PRX', '\x16\x03\x01\x02\0', 'PRI * HTTP/1.1\r\n\r\n']) t.match(await raw(port, [start]), /^HTTP\/1\.1 404 /, start)
  t.equal(refused().protocol, 8)
  const hasty = await start(t, { limits: { prefaceMs: 100 } })
  t.equal(await raw(hasty.port, []), '', 'nothing')
  for (const start of ['PRI', PREFACE.subarray(0, -1)]) t.equal(await raw(hasty.port, [start]), '', 'the start of a preface')
  t.equal(hasty.refused().protocol, undefined)
  const inPieces = await raw(port, [PREFACE.subarray(0, 1), PREFACE.subarray(1, 10), Buffer.concat([PREFACE.subarray(10), SETTINGS, frame(GOAWAY, 0, 0, Buffer.alloc(8))])])
  t.equal(inPieces.charCodeAt(3), SETTINGS_TYPE, 'a preface in pieces')
  await raw(port, [Buffer.concat([PREFACE, frame(DATA, 0, 0, Buffer.from('x'))])])
  t.equal(refused().protocol, 9, 'frames that are wrong')
  t.match(await client.call([framed(body)]), { code: OK })
  t.ok(grpc.stats().connections <= 2)
})

// HTTP/2 by hand
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const [DATA, HEADERS, RST_STREAM, SETTINGS_TYPE, PING, GOAWAY, CONTINUATION] = [0, 1, 3, 4, 6, 7, 9]
const END_STREAM = 1
const END_HEADERS = 4

function frame (type, flags, stream, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const SETTINGS = frame(SETTINGS_TYPE, 0, 0)

/** Each header as a literal that is not indexed. */
function headerBlock (headers) {
  return Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]))
}

const CALL = headerBlock({ ':method': 'POST', ':scheme': 'http', ':path': TRACES, ':authority': 'localhost', 'content-type': 'application/grpc', te: 'trailers' })

async function raw (port, chunks) {
  const socket = net.connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay()
  let answer = ''
  socket.on('error', () => {}).on('data', (piece) => { answer += piece })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  for (const chunk of chunks) {
    socket.write(chunk, 'latin1')
    await new Promise(setImmediate)
  }
  await closed
  return answer
}

test('a message in pieces is read, over a connection that pings', async (t) => {
  const { port, viewer } = await start(t)
  const answer = await raw(port, [
    Buffer.concat([PREFACE, SETTINGS, frame(HEADERS, 0, 1, CALL.subarray(0, 20)), frame(CONTINUATION, END_HEADERS, 1, CALL.subarray(20))]),
    frame(DATA, 0, 1, framed(body).subarray(0, 3)), frame(DATA, 0, 1), frame(PING, 0, 0, Buffer.from('12345678')), frame(DATA, END_STREAM, 1, framed(body).subarray(3)),
    frame(GOAWAY, 0, 0, Buffer.alloc(8))
  ])
  t.ok(answer.includes('\0\0\x08\x06\x01\0\0\0\0' + '12345678'), 'an answer to the ping')
  t.match(viewer.stats(), { traces: 1, refused: { requests: 0 } })
})

test('floods of headers and of resets end their connections', async (t) => {
  const { port, client, viewer } = await start(t)
  await client.call([framed(body)])
  const large = await client.call([framed(body)], { headers: { padding: 'x'.repeat(20_000) } })
  t.match([large.http, large.reset], [undefined, http2.constants.NGHTTP2_ENHANCE_YOUR_CALM])
  const many = await client.call([framed(body)], { headers: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`h${i}`, ''])) })
  t.match([many.http, many.reset], [undefined, http2.constants.NGHTTP2_ENHANCE_YOUR_CALM])
  t.match(await client.call([framed(body)]), { code: OK }, 'the connection goes on')

  const before = process.memoryUsage().rss
  const endless = frame(CONTINUATION, 0, 1, headerBlock({ [`h${'x'.repeat(100)}`]: 'x'.repeat(100) }))
  await raw(port, [PREFACE, SETTINGS, frame(HEADERS, 0, 1, CALL), ...Array(500).fill(Buffer.concat(Array(100).fill(endless)))])
  const resets = Array.from({ length: 50_000 }, (_, i) => Buffer.concat([frame(HEADERS, END_HEADERS, 2 * i + 1, CALL), frame(RST_STREAM, 0, 2 * i + 1, Buffer.from([0, 0, 0, 8]))]))
  await raw(port, [PREFACE, SETTINGS, Buffer.concat(resets)])
  const empty = Array(50_000).fill(frame(DATA, 0, 1))
  await raw(port, [PREFACE, SETTINGS, frame(HEADERS, END_HEADERS, 1, CALL), Buffer.concat(empty)])
  t.ok(process.memoryUsage().rss - before < 200 * MIB, 'and take no memory')
  t.match(await client.call([framed(body)]), { code: OK }, 'others go on')
  await eventually(() => viewer.stats().grpc, ({ connections }) => connections === 1)
})

test('a client that never reads is not waited for', async (t) => {
  const { port, client, viewer } = await start(t, { limits: { callMs: 300, idleMs: 500, closingMs: 50 } })
  const sockets = Array.from({ length: 20 }, () => net.connect(port, '127.0.0.1').pause())
  for (const socket of sockets) {
    socket.on('error', () => {})
    socket.write(Buffer.concat([PREFACE, SETTINGS]))
    for (let id = 1; id < 200; id += 2) socket.write(Buffer.concat([frame(HEADERS, END_HEADERS, id, CALL), frame(DATA, id % 4 === 1 ? END_STREAM : 0, id, framed(body))]))
  }
  t.teardown(() => { for (const socket of sockets) socket.destroy() })
  client.session.destroy()
  await eventually(() => viewer.stats().received, ({ requests }) => requests >= 500)
  await eventually(() => viewer.stats().grpc, ({ connections }) => connections === 0)
  await answersAgain({ call: (chunks) => clientOf(t, port).call(chunks) })
})

test('a flood of pings that nobody reads ends its connection', async (t) => {
  const { port, viewer } = await start(t)
  const socket = net.connect(port, '127.0.0.1').pause()
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  socket.write(Buffer.concat([PREFACE, SETTINGS]))
  const pings = Buffer.concat(Array(10_000).fill(frame(PING, 0, 0, Buffer.alloc(8))))
  while (!socket.destroyed && socket.writable) await new Promise((resolve) => { socket.write(pings, resolve) })
  await eventually(() => viewer.stats().grpc, ({ connections }) => connections <= 1)
  t.pass()
})

test('connections are limited', async (t) => {
  const { port, refused, client } = await start(t)
  await client.call([framed(body)])
  const sockets = Array.from({ length: 300 }, () => net.connect(port, '127.0.0.1').on('error', () => {}))
  t.teardown(() => { for (const socket of sockets) socket.destroy() })
  await eventually(refused, ({ connections }) => connections === 300 - 255)
  t.match(await client.call([framed(body)]), { code: OK })
})

test('gRPC listens on both addresses of loopback, and on no other', async (t) => {
  const { port } = await start(t)
  t.match(await clientOf(t, port, '[::1]').call([framed(body)]), { code: OK })
  const addresses = Object.values(require('node:os').networkInterfaces()).flat().filter(({ internal, family }) => !internal && family === 'IPv4')
  for (const { address } of addresses) {
    await t.rejects(new Promise((resolve, reject) => { net.connect({ port, host: address }).on('connect', resolve).on('error', reject) }), { code: 'ECONNREFUSED' }, address)
  }
})

test('the command prints the gRPC port, and takes the next one if the port is in use', async (t) => {
  const { port } = await start(t)
  const command = runCommand(t, ['--port', '0', '--grpc-port', String(port)])
  const [, taken] = await command.output(new RegExp(`port ${port} is in use: this viewer receives gRPC on (\\d+), and does not see what is sent to ${port}\n`))
  t.ok(Number(taken) > port)
  const [, url] = await command.output(new RegExp(`(http://localhost:\\d+) shows what is sent to it \\(gRPC: port ${taken}\\)\n`))
  t.match(await clientOf(t, taken).call([framed(body)]), { code: OK })
  t.match(await (await fetch(`${url}/api/stats`)).json(), { traces: 1, grpc: { port: Number(taken), messages: 1 } })
  t.match(await (await fetch(`http://localhost:${taken}/`)).text(), `Send OTLP over HTTP to port ${new URL(url).port}.`)
})

test('an app still sends over HTTP, and a service that it starts sends over gRPC', async (t) => {
  const { app, json, text } = await runApp(t)
  const [, port] = /shows the requests of app\.js \(gRPC: port (\d+)\)/.exec(text())
  await fetch(`${app}/users/7`)
  await eventually(() => json('/api/traces'), ({ total }) => total === 1)
  t.equal((await json('/api/stats')).grpc.messages, 0)
  await clientOf(t, port).call([framed(body)])
  t.equal((await json('/api/traces')).total, 2)
})

test('gRPC takes the next free port, and a failure to listen is explained', async (t) => {
  const listening = async (options, errors = {}) => {
    const tried = []
    const said = []
    const viewer = {
      async listenGrpc (port) {
        tried.push(port)
        const code = errors[port] ?? errors.all
        if (code !== undefined) throw Object.assign(new Error(code), { code })
        return port === 0 ? 50_000 : port
      },
      async close () { said.push('closed') }
    }
    const taken = await listenForGrpc(viewer, options, (text) => { said.push(text) }).catch((error) => error.expected && error.message)
    return { taken, tried, said }
  }
  t.same(await listening({}), { taken: 4317, tried: [4317], said: [] })
  t.same(await listening({ port: 0 }), { taken: 50_000, tried: [0], said: [] })
  t.same(await listening({ port: 5000 }), { taken: 4317, tried: [4317], said: [] })
  t.same(await listening({ 'grpc-port': 4318, port: 5000 }), { taken: 4318, tried: [4318], said: [] })
  t.same(await listening({}, { 4317: 'EADDRINUSE' }), { taken: 4319, tried: [4317, 4319], said: ['port 4317 is in use: this viewer receives gRPC on 4319, and does not see what is sent to 4317'] }, 'apps send by HTTP to 4318')
  t.match(await listening({}, { all: 'EADDRINUSE' }), { taken: undefined, said: [/^nothing is received over gRPC: all ports up to \d+ are in use\. Choose another with --grpc-port$/] })
  t.match(await listening({ 'grpc-port': 80 }, { all: 'EACCES' }), { taken: /no permission to listen on port 80\. Choose a port above 1023 with --grpc-port/, tried: [80], said: ['closed'] })
  t.match(parseArguments(['--grpc-port', '5']), { options: { 'grpc-port': 5 } })
  t.throws(() => parseArguments(['--grpc-port', 'x']), /--grpc-port must be a number/)
})
