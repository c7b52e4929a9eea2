'use strict'

const { test } = require('tap')
const zlib = require('node:zlib')
const dc = require('node:diagnostics_channel')
const net = require('node:net')
const { AsyncLocalStorage } = require('node:async_hooks')
const { listenAnew } = require('../support/new-port')
const { startSink } = require('../support/otlp-sink')
const { startExporter, idOf, prefix: testPrefix } = require('../support/chunk-writer')

test('spans arrive complete, once and in order', async (t) => {
  const sink = await startSink(t)
  const { exporter, stats, write, identity } = startExporter(t, { url: sink.url })
  write(5000, 300)
  await exporter.flush()
  t.equal(identity(), 0)
  t.equal(stats.delivered, 5000)
  t.strictSame(sink.spans.map((span) => span.spanId), Array.from({ length: 5000 }, (_, i) => idOf(i + 1)))
  t.equal(sink.spans[0].resource['service.name'], 'test')
})

test('an export request declares its content, its length and its sender', async (t) => {
  const sink = await startSink(t)
  const { exporter, write } = startExporter(t, { url: sink.url, exporter: { headers: { 'x-tenant': 'a' } } })
  write(3)
  await exporter.flush()
  const { headers, bytes } = sink.requests[0]
  t.match(headers, {
    'content-type': 'application/x-protobuf',
    'content-length': String(bytes),
    'accept-encoding': 'identity',
    'user-agent': /^light-trace\/\d+\.\d+\.\d+/,
    'x-tenant': 'a'
  })
  t.notOk(headers['content-encoding'])
})

test('many small spans share few requests on one connection', async (t) => {
  const sink = await startSink(t)
  const ports = new Set()
  sink.respond = (req) => {
    ports.add(req.socket.remotePort)
    return { status: 200 }
  }
  const { exporter, stats, write } = startExporter(t, { url: sink.url })
  for (let i = 0; i < 10; i++) {
    write(3000, 350)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await exporter.flush({ timeoutMs: 50_000 }) // the sink decodes all of them, in this process
  t.equal(stats.delivered, 30_000)
  t.ok(sink.requests.length <= 11, `${sink.requests.length} requests for 10 MB`)
  t.equal(ports.size, 1)
})

test('the first spans of a process are sent before the full flush delay', async (t) => {
  const sink = await startSink(t)
  const { stats, write, exporter } = startExporter(t, { url: sink.url, buffer: { flushDelayMs: 10 * 60_000 } })
  write(1)
  await sink.waitFor(1)
  write(1)
  await sink.waitFor(2)
  await exporter.flush()
  t.equal(stats.delivered, 2)
  t.equal(sink.requests.length, 2)
})

test('a few spans are sent after the flush delay, without a flush', async (t) => {
  const sink = await startSink(t)
  const { stats, write } = startExporter(t, { url: sink.url, buffer: { flushDelayMs: 10 } })
  write(2)
  await sink.waitFor(2)
  write(1)
  await sink.waitFor(3)
  t.equal(stats.exportsFailed, 0)
})

test('gzip is used if configured', async (t) => {
  const sink = await startSink(t)
  const { exporter, write } = startExporter(t, { url: sink.url, exporter: { compression: 'gzip' } })
  write(4000, 300)
  await exporter.flush()
  t.equal(sink.requests[0].headers['content-encoding'], 'gzip')
  t.equal(sink.spans.length, 4000)
  t.ok(sink.requests[0].bytes < 0.8 * 4000 * 300, `${sink.requests[0].bytes} bytes`)
})

test('zstd is used if configured and supported by Node, and gzip for a collector that rejects it', { skip: zlib.zstdCompress === undefined && 'this Node has no zstd' }, async (t) => {
  const sink = await startSink(t)
  const { exporter, write } = startExporter(t, { url: sink.url, exporter: { compression: 'zstd' } })
  write(4000, 300)
  await exporter.flush()
  t.equal(sink.requests[0].headers['content-encoding'], 'zstd')
  t.equal(sink.spans.length, 4000)
  t.ok(sink.requests[0].bytes < 0.8 * 4000 * 300, `${sink.requests[0].bytes} bytes`)

  for (const refused of [400, 415]) {
    const sink = await startSink(t)
    sink.respond = ({ headers }) => ({ status: headers['content-encoding'] === 'zstd' ? refused : 200 })
    const { exporter, stats, write } = startExporter(t, { url: sink.url, exporter: { compression: 'zstd' } })
    for (let i = 0; i < 3; i++) {
      write(10, 300)
      await exporter.flush()
    }
    t.same(sink.requests.map(({ headers, status }) => [headers['content-encoding'], status]), [['zstd', refused], ['gzip', 200], ['gzip', 200], ['gzip', 200]], 'zstd is tried once')
    t.equal(sink.spans.length, 30)
    t.match(stats, { exportsOk: 3, exportsFailed: 0, retried: 10 })
  }
})

test('a request holds at most the configured number of spans', async (t) => {
  const sink = await startSink(t)
  const { exporter, write } = startExporter(t, { url: sink.url, batch: { maxSpans: 7 } })
  write(30)
  await exporter.flush()
  t.strictSame(sink.requests.map((request) => request.spans.length), [7, 7, 7, 7, 2])
})

test('a span that is larger than a chunk is delivered', async (t) => {
  const sink = await startSink(t)
  const { exporter, stats, write } = startExporter(t, { url: sink.url })
  write(1)
  write(1, 700_000)
  write(1)
  await exporter.flush()
  t.equal(stats.delivered, 3)
  t.equal(sink.spans[1].name.length > 699_000, true)
})

test('the buffer never exceeds its limit, and drops the oldest spans first', async (t) => {
  const sink = await startSink(t)
  sink.respond = () => ({ status: 503 })
  const maxBytes = 1024 * 1024
  const { exporter, stats, write, identity } = startExporter(t, { url: sink.url, buffer: { maxBytes, flushDelayMs: 1 } })
  write(1)
  await sink.waitFor((sink) => sink.requests.length === 1)
  for (let i = 0; i < 50; i++) {
    write(200, 300)
    t.ok(exporter.bufferBytes <= maxBytes)
    t.equal(identity(), 0)
  }
  const dropped = stats.dropped.queue_full
  t.ok(dropped > 5000)
  sink.respond = () => ({ status: 200 })
  await exporter.flush({ timeoutMs: 20_000 })
  t.equal(identity(), 0)
  t.equal(stats.delivered, 10_001 - dropped)
  const ids = sink.spans.map((span) => parseInt(span.spanId, 16))
  t.equal(ids.at(-1), 10_001)
  t.equal(ids.at(-1) - ids.at(-1000), 999, 'all of the newest arrived')
})

// L08
test('a span that ends after close is dropped as after_shutdown', async (t) => {
  const sink = await startSink(t)
  const { exporter, stats, write, identity } = startExporter(t, { url: sink.url })
  write(2)
  await exporter.close()
  t.equal(stats.delivered, 2)
  write(3)
  t.equal(stats.dropped.after_shutdown, 3)
  t.equal(identity(), 0)
  await exporter.flush()
  await exporter.close()
  t.equal(sink.requests.length, 1)
})

test('waiting spans use only the memory they need, however few spans a request may hold', async (t) => {
  const { exporter, stats, write, identity } = startExporter(t, { url: 'http://127.0.0.1:9/v1/traces', buffer: { maxBytes: 1024 * 1024 }, batch: { maxSpans: 1 } })
  write(2000, 300)
  t.equal(exporter.queued, 2000)
  t.strictSame({ ...stats.dropped }, {})
  t.ok(exporter.bufferBytes < 900_000, `${exporter.bufferBytes} bytes`)
  t.equal(identity(), 0)
})

test('nothing that we start runs in the context of the request that happened to start it', async (t) => {
  const storage = new AsyncLocalStorage()
  const sink = await startSink(t)
  const seen = []
  const prefix = {
    head (bytes) {
      seen.push(storage.getStore())
      return testPrefix.head(bytes)
    }
  }
  const { exporter, write } = startExporter(t, { url: sink.url, buffer: { flushDelayMs: 1 }, prefix, suppress: (fn) => storage.exit(fn) })
  storage.run('a request', () => write(1)) // starts the timer
  await sink.waitFor(1)
  storage.run('a request', () => write(9000, 400)) // fills chunks
  await sink.waitFor(9001)
  await storage.run('a request', () => {
    write(1)
    return exporter.flush()
  })
  await storage.run('a request', () => {
    write(1)
    return exporter.close()
  })
  t.ok(seen.length >= 4)
  t.strictSame([...new Set(seen)], [undefined])
})

test('connections are opened with tracing suppressed, and do not use node:http', async (t) => {
  const storage = new AsyncLocalStorage()
  const sink = await startSink(t)
  const seen = []
  const onSocket = ({ socket }) => {
    const store = storage.getStore()
    if (store === undefined) return // the sink's socket
    seen.push(store)
    socket.once('connect', () => seen.push(storage.getStore()))
    socket.once('data', () => {
      seen.push(storage.getStore())
      socket.destroy() // so that the next request needs a new connection
    })
  }
  const onRequest = () => t.fail('node:http is used')
  dc.subscribe('net.client.socket', onSocket)
  dc.subscribe('http.client.request.start', onRequest)
  t.teardown(() => {
    dc.unsubscribe('net.client.socket', onSocket)
    dc.unsubscribe('http.client.request.start', onRequest)
  })
  const { exporter, write } = startExporter(t, { url: sink.url, buffer: { flushDelayMs: 1 }, suppress: (fn) => storage.run('suppressed', fn) })
  storage.run('request', () => write(1))
  await sink.waitFor(1)
  storage.run('request', () => write(9000, 400))
  await sink.waitFor(9001)
  await storage.run('request', () => {
    write(1)
    return exporter.flush()
  })
  t.ok(seen.length >= 9)
  t.strictSame([...new Set(seen)], ['suppressed'])
})

test('an export on the wire is one HTTP/1.1 request', async (t) => {
  const asked = []
  const server = net.createServer((socket) => {
    let text = ''
    socket.on('error', () => {})
    socket.setEncoding('latin1').on('data', (piece) => {
      text += piece
      const [head, body] = text.split('\r\n\r\n')
      const length = Number(/^content-length: (\d+)$/m.exec(head)?.[1])
      if (body.length < length) return
      asked.push({ head: head.split('\r\n'), body, length })
      text = ''
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    })
  })
  const host = `127.0.0.1:${await listenAnew(server)}`
  t.teardown(() => server.close())
  const headers = { 'x-api-key': 'caf\u00e9', 'user-agent': 'somebody else' }
  const plain = startExporter(t, { url: `http://${host}/v1/traces?a=b%20c#hash`, exporter: { headers } })
  plain.write(1)
  await plain.exporter.flush()
  plain.write(5000)
  await plain.exporter.flush()
  const gzip = startExporter(t, { url: `http://${host}`, exporter: { compression: 'gzip' } })
  gzip.write(1)
  await gzip.exporter.flush()

  const [first, second, compressed] = asked
  t.strictSame(first.head.map((line) => line.replace(/[0-9a-f]{32}-[0-9a-f]{16}/, 'ids')), [
    'POST /v1/traces?a=b%20c HTTP/1.1', `host: ${host}`, 'x-api-key: caf\u00e9', `user-agent: light-trace/${require('../../package.json').version}`,
    'connection: keep-alive', 'content-type: application/x-protobuf', 'accept-encoding: identity', 'traceparent: 00-ids-00', `content-length: ${first.length}`
  ])
  t.equal(second.body.length, second.length)
  t.match(compressed.head, ['POST / HTTP/1.1'])
  t.ok(compressed.head.includes('content-encoding: gzip'))
  t.equal(compressed.body.slice(0, 2), '\x1f\x8b')
  t.equal(plain.stats.delivered, 5001)
})

test('a flush takes any options and never rejects', async (t) => {
  const sink = await startSink(t)
  const { exporter, stats, write } = startExporter(t, { url: sink.url })
  for (const options of [undefined, null, {}, { timeoutMs: Infinity }, { timeoutMs: NaN }, { timeoutMs: -1 }, { timeoutMs: '5' }, { timeoutMs: 2 ** 40 }, 7]) {
    write(1)
    await exporter.flush(options)
  }
  t.equal(stats.delivered, 9)
})
