'use strict'

// With zstd compression, spans also reach real collectors that do not support it. Node supports zstd since 22.15, so the application runs
// on another Node than this test.

const { test } = require('tap')
const { execFile } = require('node:child_process')
const { join } = require('node:path')
const { promisify } = require('node:util')
const { installNode, nodeBinary } = require('../../scripts/matrix-cell')
const { collectors } = require('../support/collectors')

const ROOT = join(__dirname, '../..')
const NODE = 24

const APP = `
const app = require('fastify')()
app.register(require('.'), { exporter: { url: process.argv[1], compression: 'zstd' }, serviceName: 'zstd' })
app.get('/', async ({ trace }) => { trace.withSpan('step', () => {}); return trace.traceId })
app.inject('/').then(async ({ body }) => {
  await app.lightTrace.flush()
  const { spans } = app.lightTrace.stats()
  console.log(JSON.stringify({ traceId: body, delivered: spans.delivered, retried: spans.retried }))
  await app.close()
})`

for (const collector of collectors) {
  test(`${collector.name} rejects zstd, and is then sent gzip`, async (t) => {
    await installNode(NODE)
    const { stdout } = await promisify(execFile)(nodeBinary(NODE), ['-e', APP, collector.tracesUrl], { cwd: ROOT, env: { PATH: process.env.PATH } })
    const { traceId, delivered, retried } = JSON.parse(stdout)
    t.equal(delivered, 2)
    t.equal(retried, 2, 'it accepts zstd: change lib/export/compressor.js and docs/backends.md')
    t.same((await collector.spansOf(traceId, 2)).map(({ name }) => name), ['GET /', 'step'])
  })
}
