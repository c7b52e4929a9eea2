'use strict'

const { test } = require('tap')
const { dispositionOf, isUnreachable, retryAfterMs, WAIT_MIN_MS, RETRY_AFTER_MAX_MS } = require('../../../lib/export/http/retry')

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0)

test('only failures that OTLP calls retryable are retried', async (t) => {
  for (const status of [429, 502, 503, 504]) t.equal(dispositionOf(status), 'retry', `${status}`)
  for (const status of [200, 202, 204, 206, 299]) t.equal(dispositionOf(status), 'delivered', `${status}`)
  for (const status of [301, 302, 307, 308, 400, 401, 403, 404, 405, 407, 408, 415, 422, 500, 501, 505, 507]) t.equal(dispositionOf(status), 'refused', `${status}`)
  t.equal(dispositionOf(413), 'split')
  t.equal(dispositionOf(0), 'retry', 'no answer')
  t.equal(dispositionOf(407, { hasProxy: true }), 'retry', 'a proxy, not the collector')
  t.equal(dispositionOf(200, { format: 'html' }), 'misdirected')
  t.equal(dispositionOf(200, { format: 'grpc' }), 'misdirected')
  t.equal(dispositionOf(503, { format: 'html' }), 'retry', 'like the page of a load balancer')
  t.equal(dispositionOf(200, { format: 'html', isTooLong: true }), 'refused')
  t.equal(dispositionOf(503, { isTooLong: true }), 'retry')
})

// T15
test('Retry-After is parsed, kept within bounds, and never NaN', async (t) => {
  const cases = [
    ['2', 2000], [' 2 ', 2000], ['0', WAIT_MIN_MS], ['-5', WAIT_MIN_MS], ['120', 120_000], ['86400', RETRY_AFTER_MAX_MS],
    ['9'.repeat(60), RETRY_AFTER_MAX_MS],
    ['Sat, 21 Nov 2026 12:00:07 GMT', 7000],
    ['Sat, 21 Nov 2026 11:00:00 GMT', WAIT_MIN_MS],
    ['Fri, 31 Dec 9999 23:59:59 GMT', RETRY_AFTER_MAX_MS]
  ]
  for (const [header, ms] of cases) t.equal(retryAfterMs(header, NOW), ms, header)
  for (const header of [undefined, '', 'abc', '1e308', '1.5', 'NaN', 'Infinity', '0x10', '١٠', '9'.repeat(100), 'Sat, 99 Foo 2026 12:00:07 GMT', '2026-11-21', ['2'], 2]) {
    t.equal(retryAfterMs(header, NOW), -1, String(header).slice(0, 20))
  }
})

test('a refused connection, an unknown host and a wrong certificate mean that the collector is unreachable', async (t) => {
  for (const code of ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT', 'CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_ACCESS_DENIED']) {
    t.ok(isUnreachable({ code }), code)
  }
  for (const error of [{ code: 'ECONNRESET' }, { code: 'ETIMEDOUT' }, { code: 'EPIPE' }, { code: 'EMFILE' }, {}, undefined]) t.notOk(isUnreachable(error), error?.code)
})
