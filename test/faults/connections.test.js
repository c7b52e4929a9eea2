'use strict'

// Failures of the connection, and of the collector behind it.

const { test } = require('tap')
const dns = require('node:dns')
const net = require('node:net')
const dc = require('node:diagnostics_channel')
const { setImmediate: turn } = require('node:timers/promises')
const { startFakeCollector } = require('../support/fake-collector')
const { startExporter, idOf } = require('../support/chunk-writer')
const { listenAnew } = require('../support/new-port')
const { signal } = require('../support/raw-client')
const { load } = require('../support/steady-load')

const realRandom = Math.random

function shortestWaits (t) {
  Math.random = () => 0
  t.teardown(() => { Math.random = realRandom })
}

// T01
test('if the collector never comes up, the buffer fills, then drops the oldest spans, with few attempts', async (t) => {
  const collector = await startFakeCollector(t)
  await collector.down()
  const maxBytes = 512 * 1024
  const { exporter, stats, logged, write, identity } = startExporter(t, { url: collector.url, buffer: { maxBytes, flushDelayMs: 10 }, closeTimeoutMs: 600_000 })
  const startedAt = performance.now()
  await load(write, 4000, 2000)
  const seconds = (performance.now() - startedAt) / 1000
  t.equal(identity(), 0)
  t.ok(exporter.bufferBytes <= maxBytes)
  t.equal(exporter.queued + exporter.inFlight + stats.dropped.queue_full, 8000)
  t.ok(exporter.queued > 800, `${exporter.queued} are kept`)
  t.ok(stats.exportsFailed <= 10 * seconds + 1, `${stats.exportsFailed} attempts in ${seconds} s`)
  t.match(logged.find(({ kind }) => kind === 'collector'), { message: /ECONNREFUSED/ })
  await exporter.close() // does not wait, since the collector is unreachable
  t.equal(stats.dropped.shutdown_deadline + stats.dropped.queue_full, 8000)
  t.equal(logged.at(-1).kind, 'shutdown')
})

// T02
test('a collector that comes up late gets every span once, the oldest first', async (t) => {
  shortestWaits(t)
  const collector = await startFakeCollector(t)
  await collector.down()
  const { stats, write, identity } = startExporter(t, { url: collector.url, buffer: { flushDelayMs: 10 } })
  await load(write, 2000, 500)
  await collector.up()
  await collector.until(() => stats.delivered === 1000)
  t.equal(identity(), 0)
  t.strictSame([...collector.delivered.keys()], Array.from({ length: 1000 }, (_, i) => idOf(i + 1)))
  t.strictSame(collector.duplicates, [])
})

// T03
test('an outage under load of 0.8 of the buffer\'s time loses no span and duplicates none', async (t) => {
  Math.random = () => 0.999 // the longest waits, which end early only because the buffer fills
  t.teardown(() => { Math.random = realRandom })
  const collector = await startFakeCollector(t)
  const maxBytes = 1024 * 1024
  const perSecond = 1500
  const bytesPerSpan = 360
  const lastsMs = maxBytes / (perSecond * bytesPerSpan) * 1000
  const { stats, logged, write, identity, exporter } = startExporter(t, { url: collector.url, buffer: { maxBytes, flushDelayMs: 50 } })
  await load(write, perSecond, 300)
  await collector.down()
  await load(write, perSecond, 0.8 * lastsMs)
  await collector.up()
  await load(write, perSecond, 0.6 * lastsMs)
  await exporter.flush()
  t.equal(identity(), 0)
  t.strictSame({ ...stats.dropped }, {})
  t.equal(collector.delivered.size, stats.accepted)
  t.strictSame(collector.duplicates, [])
  t.equal(logged.filter(({ code }) => code === 'recovered').length, 1)
})

// T04
test('an outage of twice that time loses exactly the counted spans, and keeps the newest', async (t) => {
  const collector = await startFakeCollector(t)
  const maxBytes = 512 * 1024
  const perSecond = 2000
  const { stats, logged, write, identity, exporter } = startExporter(t, { url: collector.url, buffer: { maxBytes, flushDelayMs: 50 } })
  await collector.down()
  await load(write, perSecond, 2 * maxBytes / (perSecond * 360) * 1000)
  t.equal(identity(), 0)
  await collector.up()
  await collector.until(() => collector.delivered.size > 0) // an attempt from before its return may still be running, and would end the flush
  await exporter.flush({ timeoutMs: 20_000 })
  const dropped = stats.dropped.queue_full
  t.ok(dropped > 0)
  t.equal(identity(), 0)
  t.equal(collector.delivered.size, stats.accepted - dropped)
  t.equal(collector.delivered.size, stats.delivered)
  t.ok(collector.delivered.has(idOf(stats.accepted)))
  t.notOk(collector.delivered.has(idOf(1)))
  t.match(logged.at(-1), { code: 'recovered', message: new RegExp(`; ${dropped} spans? lost`) })
})

// T05; bench/soak runs a minute of it
test('a flapping collector loses nothing and is not flooded', async (t) => {
  const collector = await startFakeCollector(t)
  const { stats, write, identity, exporter } = startExporter(t, { url: collector.url, buffer: { flushDelayMs: 20 } })
  for (let i = 0; i < 6; i++) {
    await load(write, 1000, 150)
    await collector.down()
    await load(write, 1000, 150)
    await collector.up()
  }
  // An attempt that began while it was down may fail now. That ends a flush, because the collector then counts as unreachable.
  for (let i = 0; i < 3 && exporter.queued + exporter.inFlight > 0; i++) await exporter.flush()
  t.equal(identity(), 0)
  t.strictSame({ ...stats.dropped }, {})
  t.equal(collector.delivered.size, stats.accepted)
  t.ok(collector.duplicates.length <= stats.retried)
  t.ok(stats.exportsFailed < 30, `${stats.exportsFailed} failures`)
  t.ok(collector.sockets.size <= 1)
})

// T06
test('an attempt at a collector that accepts and never answers ends after the full timeout', async (t) => {
  shortestWaits(t)
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }, { status: 200 }]
  const { stats, write, identity, exporter } = startExporter(t, { url: collector.url, exporter: { timeoutMs: 200 } })
  write(3)
  await exporter.flush()
  t.equal(identity(), 0)
  t.equal(stats.delivered, 3)
  t.equal(stats.retried, 3)
  t.match(stats.lastError, /ETIMEDOUT/)
  await collector.until(() => collector.sockets.size === 1)
  t.equal(collector.duplicates.length, 3, 'the collector had read them: duplicates are counted as retried')
})

// L01
test('close waits for a hanging collector until its deadline, and no longer', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const { stats, write, identity, exporter } = startExporter(t, { url: collector.url, closeTimeoutMs: 200 })
  write(5000, 300)
  const closed = exporter.close()
  t.equal(exporter.close(), closed)
  await closed
  t.equal(stats.dropped.shutdown_deadline, 5000)
  t.equal(identity(), 0)
  await collector.until(() => collector.sockets.size === 0)
})

// T08, T09
for (const [what, how] of [['in the middle of the request', { resetAt: 300_000 }], ['after the request', { resetAfterUpload: true }]]) {
  test(`a connection that is reset ${what} is retried, and duplicates are counted as retried`, async (t) => {
    shortestWaits(t)
    const collector = await startFakeCollector(t)
    collector.script = [how, { status: 200 }]
    const { stats, write, identity, exporter } = startExporter(t, { url: collector.url })
    write(3000, 400)
    await exporter.flush()
    t.equal(identity(), 0)
    t.equal(stats.delivered, 3000)
    t.equal(collector.delivered.size, 3000)
    t.ok(collector.duplicates.length <= stats.retried)
    t.equal(stats.exportsFailed, 1)
  })
}

// T10
test('a kept connection that closes just when it is used again costs neither spans nor a wait', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 200 }, { resetAt: 1 }, { status: 200 }]
  const { stats, logged, write, identity, exporter } = startExporter(t, { url: collector.url })
  write(3)
  await exporter.flush()
  write(3)
  await exporter.flush()
  t.equal(identity(), 0)
  t.equal(stats.delivered, 6)
  t.equal(stats.exportsFailed, 0)
  t.equal(stats.retried, 3, 'it may have been read')
  t.strictSame(logged, [])
})

test('nor does a kept connection that the server ends with 408', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 200 }, { status: 408, headers: { connection: 'close' } }, { status: 200 }, { status: 408 }]
  const { stats, logged, write, identity, exporter } = startExporter(t, { url: collector.url })
  for (let i = 0; i < 2; i++) {
    write(3)
    await exporter.flush()
  }
  t.equal(stats.delivered, 6)
  t.equal(stats.retried, 3)
  t.equal(stats.exportsFailed, 0)
  t.strictSame(logged, [])
  write(3)
  await exporter.flush()
  t.equal(collector.requests.length, 5, 'once')
  t.strictSame({ ...stats.dropped }, { non_retryable: 3 })
  t.equal(identity(), 0)
})

test('a new connection that is reset counts as a failed attempt', async (t) => {
  shortestWaits(t)
  const collector = await startFakeCollector(t)
  collector.script = [{ resetAt: 1 }, { status: 200 }]
  const { stats, write, exporter } = startExporter(t, { url: collector.url })
  write(3)
  await exporter.flush()
  t.equal(stats.exportsFailed, 1)
  t.equal(stats.delivered, 3)
})

test('a server that closes idle connections early costs nothing', async (t) => {
  const collector = await startFakeCollector(t, { keepAliveTimeout: 1 })
  const { stats, write, exporter } = startExporter(t, { url: collector.url })
  for (let i = 0; i < 5; i++) {
    write(1)
    await exporter.flush()
    await collector.until(() => collector.sockets.size === 0)
  }
  t.equal(stats.delivered, 5)
  t.equal(stats.exportsFailed, 0)
})

// T24
function replaceLookup (t, answer) {
  const { lookup } = dns
  dns.lookup = (hostname, options, callback) => {
    if (net.isIP(hostname) !== 0) return lookup(hostname, options, callback) // for a server that listens
    const addresses = answer(hostname, callback)
    if (Array.isArray(addresses)) process.nextTick(() => options.all ? callback(null, addresses) : callback(null, addresses[0].address, addresses[0].family))
  }
  t.teardown(() => { dns.lookup = lookup })
}

for (const code of ['ENOTFOUND', 'EAI_AGAIN']) {
  test(`a name that cannot be resolved (${code}) is looked up again`, async (t) => {
    shortestWaits(t)
    const collector = await startFakeCollector(t, { hostInUrl: 'collector.example' })
    let asked = 0
    replaceLookup(t, (hostname, callback) => {
      t.equal(hostname, 'collector.example')
      if (++asked > 2) return [{ address: '127.0.0.1', family: 4 }]
      process.nextTick(callback, Object.assign(new Error(`getaddrinfo ${code}`), { code }))
    })
    const { stats, write, exporter } = startExporter(t, { url: collector.url })
    write(3)
    await exporter.flush()
    t.equal(exporter.queued, 3, 'a flush does not wait for an unreachable collector')
    await collector.untilRequests(1)
    await exporter.flush()
    t.equal(stats.delivered, 3)
  })
}

test('the timeout includes a resolver that does not answer', async (t) => {
  shortestWaits(t)
  const collector = await startFakeCollector(t, { hostInUrl: 'collector.example' })
  let asked = 0
  replaceLookup(t, () => asked++ === 0 ? undefined : [{ address: '127.0.0.1', family: 4 }])
  const { stats, write, exporter } = startExporter(t, { url: collector.url, exporter: { timeoutMs: 100 } })
  write(3)
  await exporter.flush()
  t.equal(stats.delivered, 3)
  t.match(stats.lastError, /ETIMEDOUT/)
})

test('a new connection looks the address up again', async (t) => {
  const collector = await startFakeCollector(t, { hostInUrl: 'collector.example' })
  let asked = 0
  replaceLookup(t, (hostname) => {
    if (hostname === 'collector.example') asked++
    return [{ address: '127.0.0.1', family: 4 }]
  })
  const { stats, write, exporter } = startExporter(t, { url: collector.url })
  for (let i = 0; i < 2; i++) {
    write(1)
    await exporter.flush()
    await collector.down()
    await collector.up()
  }
  t.equal(stats.delivered, 2)
  t.equal(asked, 2)
})

// T25
test('if one of an IPv4 and an IPv6 address refuses, the other is used', async (t) => {
  // An address on which no other test listens. One may listen on the collector's port of the other loopback address.
  const refusing = { 4: { address: '127.0.0.66', family: 4 }, 6: { address: '::ffff:127.0.0.66', family: 6 } }
  for (const [host, order] of [['127.0.0.1', [refusing[6], { address: '127.0.0.1', family: 4 }]], ['::1', [refusing[4], { address: '::1', family: 6 }]]]) {
    const collector = await startFakeCollector(t, { host, hostInUrl: 'collector.example' })
    replaceLookup(t, () => order)
    const { stats, write, exporter } = startExporter(t, { url: collector.url })
    write(3)
    await exporter.flush()
    t.equal(stats.delivered, 3, `${host} only`)
  }
})

test('if all addresses of a name refuse, the reason is logged', async (t) => {
  const collector = await startFakeCollector(t, { hostInUrl: 'collector.example' })
  await collector.down()
  replaceLookup(t, () => [{ address: '::1', family: 6 }, { address: '127.0.0.1', family: 4 }])
  const { exporter, logged, write } = startExporter(t, { url: collector.url })
  write(3)
  await exporter.flush()
  t.match(logged[0].message, /\(connect ECONNREFUSED 127\.0\.0\.1:/)
  t.equal(exporter.queued, 3, 'a flush does not wait')
})

test('an IPv6 address in the URL works', async (t) => {
  const collector = await startFakeCollector(t, { host: '::1', hostInUrl: '[::1]' })
  const { stats, write, exporter } = startExporter(t, { url: collector.url })
  write(3)
  await exporter.flush()
  t.equal(stats.delivered, 3)
})

// T30
test('a slow collector delays one request, and the other spans stay in the buffer', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ readEveryMs: 20 }]
  const maxBytes = 4 * 1024 * 1024
  let socket = null
  const onSocket = (message) => { socket = message.socket }
  dc.subscribe('net.client.socket', onSocket)
  t.teardown(() => dc.unsubscribe('net.client.socket', onSocket))
  const { exporter, stats, write, identity } = startExporter(t, { url: collector.url, buffer: { maxBytes, flushDelayMs: 10 }, closeTimeoutMs: 200 })
  for (let i = 0; i < 40; i++) {
    write(1000, 400)
    await turn()
    t.equal(identity(), 0)
    t.ok(exporter.bufferBytes <= maxBytes)
    t.ok((socket?.writableLength ?? 0) <= maxBytes / 2 + 1000)
  }
  t.ok(stats.dropped.queue_full > 0)
  t.equal(collector.sockets.size, 1)
  await exporter.close()
  t.equal(identity(), 0)
})

test('unexpected data on a kept connection ends it, and costs nothing', async (t) => {
  const collector = await startFakeCollector(t)
  const { stats, write, exporter } = startExporter(t, { url: collector.url })
  for (let i = 0; i < 3; i++) {
    write(1)
    await exporter.flush()
    for (const socket of collector.sockets) socket.write('HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n')
    await collector.until(() => collector.sockets.size === 0)
  }
  t.equal(stats.delivered, 3)
  t.equal(stats.exportsFailed, 0)
  t.equal(collector.connections, 3)
})

test('unexpected data after an answer ends the connection', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ raw: `${'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'.repeat(2)}` }]
  const { stats, write, exporter } = startExporter(t, { url: collector.url })
  for (let i = 0; i < 3; i++) {
    write(1)
    await exporter.flush()
  }
  t.equal(stats.delivered, 3)
  t.equal(stats.exportsFailed, 0)
  t.equal(collector.connections, 3)
})

// T34: only one request runs at a time, so that answers cannot be swapped.
test('one request is sent at a time, however many spans wait', async (t) => {
  const collector = await startFakeCollector(t)
  let open = 0
  let most = 0
  collector.script = () => {
    most = Math.max(most, ++open)
    return { after: turn().then(() => open--) }
  }
  const { exporter, stats, write } = startExporter(t, { url: collector.url, buffer: { flushDelayMs: 1 }, batch: { maxSpans: 50 } })
  for (let i = 0; i < 20; i++) {
    write(50)
    exporter.flush()
    await turn()
  }
  await exporter.flush()
  t.equal(stats.delivered, 1000)
  t.equal(most, 1)
  t.equal(collector.connections, 1)
})

test('the next connection is opened after the previous one is gone, however it ended', async (t) => {
  shortestWaits(t)
  let open = 0
  let most = 0
  let ever = 0
  const onSocket = ({ socket }) => {
    ever++
    most = Math.max(most, ++open)
    socket.once('close', () => open--)
  }
  const collector = await startFakeCollector(t)
  dc.subscribe('net.client.socket', onSocket)
  t.teardown(() => dc.unsubscribe('net.client.socket', onSocket))
  const behaviours = [
    { status: 200 }, { resetAt: 1 }, { hang: true }, { status: 503, early: true }, { headers: { connection: 'close' } },
    { resetAfterUpload: true }, { raw: 'no HTTP\r\n\r\n' }, { trickle: { bytes: 1, everyMs: 5 } }
  ]
  collector.script = (request, number) => behaviours[number % behaviours.length]
  const { stats, write, exporter, identity } = startExporter(t, { url: collector.url, exporter: { timeoutMs: 50 } })
  for (let i = 0; i < 12; i++) {
    write(500)
    await exporter.flush()
  }
  await exporter.close()
  t.equal(identity(), 0)
  t.ok(stats.exportsFailed > 0)
  t.ok(ever > 5, `${ever} connections`)
  t.equal(most, 1)
})

test('after a close no connection is opened, whatever was in progress', async (t) => {
  let opened = 0
  const isOpen = signal()
  const server = net.createServer((socket) => {
    opened++
    isOpen.give()
    socket.on('error', () => {}).resume()
  })
  const timeoutMs = 100
  const { exporter, stats, write } = startExporter(t, { url: `http://127.0.0.1:${await listenAnew(server)}/`, exporter: { timeoutMs }, closeTimeoutMs: timeoutMs + 50 })
  write(1)
  exporter.flush()
  write(1)
  const closed = exporter.close()
  await isOpen.promise
  // The request's timeout and the close's deadline fire in the same turn. Between them, a new request is ready while the previous request's
  // connection is still closing.
  for (const until = performance.now() + timeoutMs + 100; performance.now() < until;);
  await closed
  t.equal(stats.dropped.shutdown_deadline, 2)
  await new Promise((resolve) => server.close(resolve)) // waits for every connection
  t.equal(opened, 1)
})

// P11
test('a port that does not speak HTTP is named in the log, and not flooded', async (t) => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.write('\0\0\x06\x04\0\0\0\0\0\0\x05\0\0@\0')
  })
  t.teardown(() => server.close())
  const { exporter, stats, logged, write } = startExporter(t, { url: `http://127.0.0.1:${await listenAnew(server)}/v1/traces`, closeTimeoutMs: 100 })
  write(3)
  await exporter.flush({ timeoutMs: 400 })
  t.match(logged[0].message, /4317 is gRPC/)
  t.ok(stats.exportsFailed < 6, `${stats.exportsFailed} attempts`)
  await exporter.close()
})

// L07
test('a hundred concurrent flushes send nothing twice, and all return', async (t) => {
  const collector = await startFakeCollector(t)
  const { exporter, stats, write } = startExporter(t, { url: collector.url })
  write(100)
  await Promise.all(Array.from({ length: 100 }, () => exporter.flush()))
  t.equal(stats.delivered, 100)
  t.equal(collector.requests.length, 1)
  await Promise.all([exporter.close(), exporter.close(), exporter.flush()])
  t.strictSame(collector.duplicates, [])
})

test('a flush during a wait starts one attempt early, no more', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 503 }]
  Math.random = () => 0.999
  t.teardown(() => { Math.random = realRandom })
  const { exporter, stats, write } = startExporter(t, { url: collector.url, closeTimeoutMs: 100 })
  write(3)
  await exporter.flush({ timeoutMs: 100 })
  t.equal(collector.requests.length, 1)
  await Promise.all(Array.from({ length: 50 }, () => exporter.flush({ timeoutMs: 100 })))
  t.equal(collector.requests.length, 2)
  collector.script = [{ status: 200 }]
  await exporter.close()
  t.equal(stats.delivered, 3)
})
