'use strict'

// Certificates: spans are not sent to an unverified collector.

const { test } = require('tap')
const tls = require('node:tls')
const { makeCertificate } = require('../support/certificate')
const { startFakeCollector } = require('../support/fake-collector')
const { startExporter } = require('../support/chunk-writer')

Math.random = () => 0

const DAY_MS = 24 * 60 * 60 * 1000
const ca = makeCertificate({ name: 'test authority', isCa: true })
const otherCa = makeCertificate({ name: 'other authority', isCa: true })
const server = makeCertificate({ name: 'collector', issuer: ca })
const client = makeCertificate({ name: 'client', issuer: ca })
const strict = { ...server, ca: ca.cert, requestCert: true, rejectUnauthorized: true } // asks for a client certificate

async function send (t, serverTls, exporterOptions) {
  const collector = await startFakeCollector(t, { tls: serverTls })
  const subject = startExporter(t, { url: collector.url, exporter: exporterOptions })
  subject.write(3)
  await subject.exporter.flush()
  t.equal(subject.identity(), 0)
  return { collector, ...subject }
}

test('a collector with a certificate of the given authority gets spans', async (t) => {
  const { collector, stats } = await send(t, server, { ca: ca.cert })
  t.equal(stats.delivered, 3)
  t.equal(collector.requests.length, 1)
})

// T26
const unacceptable = {
  'that signed itself': [makeCertificate(), {}],
  'of another authority': [server, { ca: otherCa.cert }],
  'that has expired': [makeCertificate({ issuer: ca, validFrom: Date.now() - 2 * DAY_MS, validTo: Date.now() - DAY_MS }), { ca: ca.cert }],
  'for another host': [makeCertificate({ issuer: ca, hosts: ['collector.example'] }), { ca: ca.cert }]
}
for (const [which, [itsTls, options]] of Object.entries(unacceptable)) {
  test(`a collector with a certificate ${which} gets nothing, and the spans wait with one log line`, async (t) => {
    const { collector, stats, exporter, logged } = await send(t, itsTls, options)
    t.equal(collector.requests.length, 0)
    t.equal(exporter.queued + exporter.inFlight, 3)
    t.equal(logged.length, 1)
    t.match(logged[0].message, /certificate|altnames|CERT/i)
    await exporter.close() // immediately: it gives up as on a refused connection
    t.equal(stats.dropped.shutdown_deadline, 3)
  })
}

test('a collector that asks for a client certificate gets ours', async (t) => {
  const { stats } = await send(t, strict, { ca: ca.cert, cert: client.cert, key: client.key })
  t.equal(stats.lastError, null)
  t.equal(stats.delivered, 3)
})

test('without the client certificate that a collector asks for, spans wait', async (t) => {
  const collector = await startFakeCollector(t, { tls: strict })
  const { exporter, stats, write, identity } = startExporter(t, { url: collector.url, exporter: { ca: ca.cert }, closeTimeoutMs: 500 })
  write(3)
  await exporter.flush({ timeoutMs: 300 })
  t.equal(collector.requests.length, 0)
  t.equal(exporter.queued + exporter.inFlight, 3)
  await exporter.close()
  t.equal(stats.dropped.shutdown_deadline, 3)
  t.equal(identity(), 0)
})

test('TLS to a server without it, or the reverse, is a failed connection', async (t) => {
  const plain = await startFakeCollector(t)
  const secure = await startFakeCollector(t, { tls: server })
  for (const url of [plain.url.replace('http:', 'https:'), secure.url.replace('https:', 'http:')]) {
    const { exporter, stats, write, identity } = startExporter(t, { url, closeTimeoutMs: 500 })
    write(3)
    await exporter.flush({ timeoutMs: 300 })
    t.ok(stats.exportsFailed > 0)
    await exporter.close()
    t.equal(stats.delivered, 0)
    t.equal(identity(), 0)
  }
})

test('certificates are parsed at start, not for each connection', async (t) => {
  const collector = await startFakeCollector(t, { tls: server })
  const { createSecureContext } = tls
  let parsed = 0
  tls.createSecureContext = (options) => {
    parsed++
    return createSecureContext(options)
  }
  t.teardown(() => { tls.createSecureContext = createSecureContext })
  const { exporter, stats, write } = startExporter(t, { url: collector.url, exporter: { ca: ca.cert } })
  t.equal(parsed, 1)
  await collector.down()
  write(1)
  await exporter.flush()
  await collector.up()
  parsed = 0 // the collector has its own TLS context
  collector.script = [{ headers: { connection: 'close' } }]
  for (let i = 0; i < 3; i++) {
    write(1)
    await exporter.flush()
  }
  t.equal(stats.delivered, 4)
  t.ok(collector.connections >= 3)
  t.equal(parsed, 0)
})

test('a later connection resumes the TLS session', async (t) => {
  const collector = await startFakeCollector(t, { tls: server })
  collector.script = [{ headers: { connection: 'close' } }]
  const { connect } = tls
  const resumed = []
  tls.connect = (options) => connect(options).on('secureConnect', function () { resumed.push(this.isSessionReused()) })
  t.teardown(() => { tls.connect = connect })
  const { exporter, stats, write } = startExporter(t, { url: collector.url, exporter: { ca: ca.cert } })
  for (let i = 0; i < 3; i++) {
    write(1)
    await exporter.flush()
  }
  t.equal(stats.delivered, 3)
  t.strictSame(resumed, [false, true, true])
})

test('a renewed certificate is accepted without a restart', async (t) => {
  const collector = await startFakeCollector(t, { tls: { ...server } })
  const { exporter, stats, write } = startExporter(t, { url: collector.url, exporter: { ca: ca.cert } })
  write(1)
  await exporter.flush()
  await collector.down()
  const renewed = makeCertificate({ issuer: ca })
  collector.renew({ cert: renewed.cert, key: renewed.key })
  await collector.up()
  write(1)
  await exporter.flush()
  t.equal(stats.delivered, 2)
})
