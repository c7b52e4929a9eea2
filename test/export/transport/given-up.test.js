'use strict'

const { test } = require('tap')
const { OtlpHttp } = require('../../../lib/export/http/otlp-http')
const { startFakeCollector } = require('../../support/fake-collector')

test('a request that is given up while it is compressed is not sent', async (t) => {
  const collector = await startFakeCollector(t)
  const http = new OtlpHttp({ url: collector.url, headers: {}, timeoutMs: 5000, compression: 'gzip' }, (fn) => fn())
  const outcome = new Promise((resolve) => http.post([Buffer.alloc(1000)], '', resolve))
  http.abort()
  t.match(await outcome, { error: { code: 'ABORTED' }, disposition: 'retry' })
  t.equal(collector.requests.length, 0)
  http.close()
})
