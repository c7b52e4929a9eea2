'use strict'

// Exports log lines while the collector fails, rows T06, T12, T14 and T18 of README.md. Each line is delivered or counted, and spans are
// not affected. LIGHT_TRACE_LONG=1 runs twenty times as many requests.

const { test } = require('tap')
const { loggingApp, isAccounted } = require('../support/logging-app')

const REQUESTS = process.env.LIGHT_TRACE_LONG === '1' ? 2000 : 100
const LINES = 5 // per request, including Fastify's two
const AT_ONCE = 10
const TWO_REJECTED = Buffer.from([0x0a, 0x02, 0x08, 0x02]) // partial_success { rejected_log_records: 2 }
const NOW = { 'retry-after': '0' }

const isLogs = (path) => path.endsWith('/v1/logs')

// `n` is the number of the request, counted per signal.
for (const { name, answer, lost = null, spansLost = null, isRetried = false } of [
  { name: '503 to each second request', answer: (path, n) => ({ status: n % 2 === 0 ? 503 : 200, headers: NOW }) },
  { name: '429 to logs, two times of three', answer: (path, n) => ({ status: isLogs(path) && n % 3 !== 2 ? 429 : 200, headers: NOW }), isRetried: true },
  { name: '400 to logs', answer: (path) => ({ status: isLogs(path) ? 400 : 200 }), lost: 'non_retryable' },
  { name: '400 to spans', answer: (path) => ({ status: isLogs(path) ? 200 : 400 }), spansLost: 'non_retryable' },
  { name: '413 to logs of more than 4 KiB', answer: (path, n, byteCount) => ({ status: isLogs(path) && byteCount > 4096 ? 413 : 200 }) },
  { name: 'two log records of each request rejected', answer: (path) => ({ status: 200, body: isLogs(path) ? TWO_REJECTED : '' }), lost: 'rejected' },
  { name: 'the first requests with logs never answered', answer: (path, n) => ({ status: 200, hang: isLogs(path) && n < 2 }), isRetried: true }
]) {
  test(name, async (t) => {
    const { app, sink, lines } = await loggingApp(t, {
      trace: { buffer: { flushDelayMs: 10 } },
      logs: { export: { timeoutMs: 300 }, maxPerSecond: 1e6 },
      routes: (app) => app.get('/', async ({ log }) => {
        for (let i = 2; i < LINES; i++) log.info({ i, text: 'x'.repeat(100) }, 'said')
        return 'ok'
      })
    })
    const counts = {}
    sink.answer = (path, n, byteCount) => {
      counts[path] = (counts[path] ?? -1) + 1
      return answer(path, counts[path], byteCount)
    }
    for (let n = 0; n < REQUESTS; n += AT_ONCE) {
      for (const { statusCode } of await Promise.all(Array.from({ length: AT_ONCE }, () => app.inject('/')))) if (statusCode !== 200) t.equal(statusCode, 200)
      t.ok(isAccounted(app.lightTrace.stats().logs.records))
    }
    const printed = lines.filter((line) => line.includes('trace_id') || line.includes('incoming request')).length
    t.equal(printed, REQUESTS * LINES, 'lines are still printed')
    const isLeft = ({ spans, logs: { records } }) => spans.queued + spans.inFlight + records.queued + records.inFlight > 0
    do await app.lightTrace.flush(); while (isLeft(app.lightTrace.stats()))
    await app.close()
    const { spans, logs: { records } } = app.lightTrace.stats()
    t.ok(isAccounted(records))
    t.ok(isAccounted(spans))
    if (isRetried) t.ok(records.retried > 0)
    if (lost === null) t.match(records, { rejected: 0, dropped: {}, delivered: records.accepted })
    else t.ok((records[lost] ?? records.dropped[lost]) > 0)
    t.same(spans.dropped, spansLost === null ? {} : { [spansLost]: REQUESTS })
    t.equal(spans.delivered, spansLost === null ? REQUESTS : 0)
    t.equal(sink.records.length, records.delivered + records.rejected, 'the collector has every delivered line')
    const numbers = sink.records.filter(({ body }) => body === 'said').map(({ traceId, attributes: { i } }) => traceId + i)
    t.equal(new Set(numbers).size, numbers.length, 'nothing arrives twice')
    t.same(sink.requests.flatMap(({ spans = [], status }) => status === 200 ? spans : []).length, spans.delivered)
  })
}
