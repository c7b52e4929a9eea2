'use strict'

// Log lines: received in both formats, held within the limit, and shown below the span that wrote them.

const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { opentelemetry: { proto } } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { startViewer, spansOf, traceId, spanId, START_MS } = require('./support')
const { encodeRequest } = require('../support/otlp-encode')
const { runCommand, runApp, eventually, arrived, APP } = require('./command')
const { runInChild } = require('../support/child')
const { TraceStore } = require('../../viewer/store/trace-store')
const { filterOf } = require('../../viewer/store/search')
const { Malformed } = require('../../viewer/otlp/proto-reader')
const { logsFromJson } = require('../../viewer/otlp/json-request')
const { rowsOf } = require('../../viewer/views/rows')
const { textOf } = require('../../viewer/views/text')
const { otlpText } = require('../../viewer/views/otlp-json')

const MIB = 1024 * 1024
const PROTOBUF = { 'content-type': 'application/x-protobuf' }
const JSON_TYPE = { 'content-type': 'application/json' }
const HOSTILE = '\u001b]0;owned\u0007\u009b31m\u202e<script>hacked=1</script>\nsecond'

const request = { id: 1, name: 'GET /users/:id', kind: 2, ms: 12.5, attributes: { 'http.request.method': 'GET', 'http.route': '/users/:id', 'http.response.status_code': 200 } }
const call = { id: 2, parent: 1, name: 'GET', kind: 3, at: 2, ms: 5 }

/** Returns an OTLP JSON body of { trace, span, at, severity, text, attributes }. */
function logsOf (lines, service = 'shop') {
  const attributes = (given = {}) => Object.entries(given).map(([key, stringValue]) => ({ key, value: { stringValue } }))
  return {
    resourceLogs: [{
      resource: { attributes: attributes({ 'service.name': service }) },
      scopeLogs: [{
        scope: { name: 'pino' },
        logRecords: lines.map(({ trace, span, at = 0, severity = 9, text = 'a line', ...rest }) => ({
          timeUnixNano: `${BigInt(START_MS) * 1_000_000n + BigInt(at * 1e6)}`,
          severityNumber: severity,
          body: { stringValue: text },
          attributes: attributes(rest.attributes),
          ...(trace !== undefined && { traceId: traceId(trace) }),
          ...(span !== undefined && { spanId: spanId(span) })
        }))
      }]
    }]
  }
}

const encoded = (lines) => logsFromJson(logsOf(lines))
const sendLogs = (viewer, lines) => viewer.post('/v1/logs', JSON.stringify(logsOf(lines)), JSON_TYPE)

test('lines are below the span that wrote them and before spans that started later, in any order of arrival', async (t) => {
  const viewer = await startViewer(t)
  await sendLogs(viewer, [{ trace: 1, span: 1, at: 8, text: 'after', severity: 13, attributes: { user: '7' } }, { trace: 1, span: 2, at: 3, text: 'inside', severity: 5 }])
  await viewer.send([request, call])
  await sendLogs(viewer, [{ trace: 1, span: 1, at: 1, text: 'before' }, { trace: 1, span: 9, at: 9, text: 'of a span that has not come', severity: 0 }])
  const text = await (await viewer.get('/api/traces/last/text')).text()
  t.equal(text, `GET /users/:id  200  12.5 ms  shop  ${traceId(1)}

SERVER GET /users/:id    12.5 ms  200
  INFO  +1.0 ms  before
  CLIENT GET              5.0 ms
    DEBUG  +3.0 ms  inside
  WARN  +8.0 ms  after  user=7
  LOG  +9.0 ms  of a span that has not come
`)
  const { rows, trace } = await viewer.json('/api/traces/last/rows')
  t.same(rows.map(({ depth, below, line = 'span', start }) => [line, depth, below, start]), [
    ['span', 0, 5, 0], ['info', 1, 0, 1], ['span', 1, 1, 2], ['debug', 2, 0, 3], ['warn', 1, 0, 8], ['', 1, 0, 9]
  ])
  t.match(trace, { lines: 4, spans: 2 })
  t.match(await viewer.json(`/api/traces/last/lines/${rows[4].id}`), {
    level: 'warn', body: { value: 'after' }, attributes: [{ key: 'user', value: '7' }], scope: { name: 'pino' }, service: 'shop'
  })
  t.equal((await viewer.get('/api/traces/last/lines/l99')).status, 404)
  const { stdout } = await runCommand(t, ['trace', 'last', '--port', String(viewer.port)]).exit
  t.equal(stdout, text, 'and so in the terminal, by way of OTLP JSON')
})

test('records of other senders are read, as protobuf by another writer and as JSON', async (t) => {
  const viewer = await startViewer(t)
  const Request = proto.collector.logs.v1.ExportLogsServiceRequest
  const body = Request.encode(Request.fromObject({
    resourceLogs: [{
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'python' } }] },
      scopeLogs: [{
        scope: { name: 'logging', version: '3' },
        logRecords: [{
          observedTimeUnixNano: String(BigInt(START_MS) * 1_000_000n),
          severityText: 'WARNING',
          traceId: Buffer.from(traceId(5), 'hex'),
          spanId: Buffer.from(spanId(6), 'hex'),
          flags: 1,
          droppedAttributesCount: 2,
          body: { kvlistValue: { values: [{ key: 'a', value: { arrayValue: { values: [{ intValue: 1 }, { boolValue: true }] } } }] } },
          attributes: [{ key: 'code.line', value: { intValue: 7 } }]
        }]
      }]
    }]
  })).finish()
  t.equal((await viewer.post('/v1/logs', body, PROTOBUF)).status, 200)
  const json = {
    resourceLogs: [{
      scopeLogs: [{
        logRecords: [{ timeUnixNano: Number(START_MS) * 1e6, severityNumber: 'SEVERITY_NUMBER_ERROR2', body: { intValue: '5' }, traceId: '', eventName: 'x.y' }, { eventName: 'only.event', attributes: null }]
      }]
    }]
  }
  t.same(await (await viewer.post('/v1/logs', JSON.stringify(json), JSON_TYPE)).json(), {})
  const { lines } = await viewer.json('/api/logs')
  t.match(lines, [
    { level: '', text: 'only.event', trace: null },
    { level: 'error', text: '5', service: '' },
    { level: 'warn', text: '{"a":[1,true]}', rest: 'code.line=7', service: 'python', trace: traceId(5), row: null, timeMs: START_MS }
  ])
  t.match((await viewer.json('/api/stats')).lines, { held: 3, received: 3 })
})

test('log lines are found by level and text, and requests are found by the text of their lines', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request])
  await sendLogs(viewer, [{ trace: 1, severity: 5, text: 'one' }, { severity: 13, text: 'Two' }, { severity: 17, attributes: { of: 'two' } }, { severity: 0, text: 'no level' }])
  const found = async (query) => (await viewer.json(`/api/logs?${query}`)).lines.map(({ text }) => text)
  t.same(await found(''), ['no level', 'a line', 'Two', 'one'])
  t.same(await found('level=info'), ['no level', 'a line', 'Two'])
  t.same(await found('level=warn'), ['a line', 'Two'])
  t.same(await found('q=TWO'), ['a line', 'Two'])
  t.same(await found('q=OF%3Dtw'), ['a line'], 'while an attribute is being typed')
  t.match(await viewer.json('/api/logs?limit=1'), { more: true, total: 4 })
  for (const query of ['level=loud', 'limit=0', `q=${'x'.repeat(251)}`]) t.equal((await viewer.get(`/api/logs?${query}`)).status, 400)
  t.equal((await viewer.json('/api/traces?q=one')).traces.length, 1)
  t.equal((await viewer.json('/api/traces?q=two')).traces.length, 0)
})

test('lines and traces share the bound: lines are evicted with their trace, and the oldest lines without a trace first', (t) => {
  const store = new TraceStore({ maxBytes: MIB })
  const long = 'x'.repeat(5000)
  for (let trace = 1; trace <= 300; trace++) {
    store.receive(encodeRequest(spansOf([{ trace, id: 1, kind: 2 }])))
    store.receiveLines(encoded([{ trace, span: 1, text: long }, { text: `loose ${trace}` }, { trace: 1000 + trace, text: long }]))
    if (store.bytes > MIB) t.fail(`${store.bytes}`)
  }
  const { size, received, dropped, looseBytes } = store.lines
  t.equal(size + dropped.evicted, received)
  t.ok(looseBytes <= MIB / 8 && looseBytes > MIB / 12, `${looseBytes}`)
  for (const trace of store.newestFirst()) t.equal(trace.lines.length, 1)
  t.ok(store.bytes > MIB * 0.9)
  store.receive(encodeRequest(spansOf([{ trace: 1300, id: 1 }])))
  t.equal(store.get(traceId(1300)).lines.length, 1, 'a trace finds the lines that came before it')
  const many = store.receiveLines(encoded(Array.from({ length: 200 }, () => ({ trace: 300, text: long }))))
  t.ok(many.dropped > 90 && many.kept + many.dropped === 200, 'one trace may hold half')
  t.equal(store.lines.dropped.trace_too_large, many.dropped)
  store.receiveLines(encoded([{ text: 'x'.repeat(MIB) }]))
  t.ok(store.bytes <= MIB, 'one that is larger than all')
  t.end()
})

test('room is made while a request of many lines is read, and all of them are saved', (t) => {
  const store = new TraceStore({ maxBytes: MIB })
  const portions = []
  const held = []
  const body = encoded(Array.from({ length: 25_000 }, () => ({ text: 'x' })))
  t.match(store.receiveLines(body, (lines) => {
    portions.push(lines.length)
    held.push(store.lines.size)
  }), { kept: 25_000, dropped: 0 })
  t.same(portions, [10_000, 10_000, 5000])
  t.ok(held.every((lines) => lines < 1000), held.join())
  t.ok(store.bytes <= MIB)
  t.end()
})

test('a sender is told what was not kept', async (t) => {
  const viewer = await startViewer(t, { maxBytes: MIB })
  await viewer.send([request])
  const response = await sendLogs(viewer, Array.from({ length: 300 }, () => ({ trace: 1, text: 'x'.repeat(5000) })))
  const { partialSuccess } = await response.json()
  t.ok(Number(partialSuccess.rejectedLogRecords) > 100)
})

// Each line needs objects in addition to its bytes.
test('endless lines stay within the bound, with any kind of traces', { timeout: 120_000 }, async (t) => {
  const child = runInChild(t, async ({ root, say }) => {
    const { bytesInUse } = require(`${root}/test/support/bytes-in-use`)
    const { TraceStore } = require(`${root}/viewer/store/trace-store`)
    const { logsFromJson } = require(`${root}/viewer/otlp/json-request`)
    const { spansOf } = require(`${root}/test/viewer/support`)
    const { encodeRequest } = require(`${root}/test/support/otlp-encode`)
    const MAX = 16 * 1024 * 1024
    const id = (i) => i.toString(16).padStart(32, '0')
    const record = (i, traceId) => ({ timeUnixNano: `${i}000000`, severityNumber: 9, body: { stringValue: `line ${i}` }, traceId, spanId: traceId?.slice(16) })
    const measure = async (count, traceOf) => {
      const store = new TraceStore({ maxBytes: MAX })
      const before = await bytesInUse()
      let most = 0
      for (let i = 1; i < count; i++) {
        store.receive(encodeRequest(spansOf([{ trace: i, id: 1 }])))
        store.receiveLines(logsFromJson({ resourceLogs: [{ scopeLogs: [{ logRecords: Array.from({ length: 100 }, (_, k) => record(i * 100 + k, traceOf(i, k))) }] }] }))
        most = Math.max(most, store.bytes)
      }
      return { most, grew: await bytesInUse() - before, bytes: store.bytes, lines: store.lines.size }
    }
    await measure(20, (i) => id(i))
    say({ max: MAX, mixed: await measure(600, (i, k) => k < 60 ? id(i) : k < 80 ? id(1e6 + i * 100 + k) : undefined), loose: await measure(300, (i, k) => id(1e6 + i * 100 + k)) })
  }, { nodeArgs: ['--max-old-space-size=120'], killAfterMs: 110_000 })
  const { said: [said], stderr } = await child.exit
  t.ok(said, stderr)
  for (const { most, grew, bytes, lines } of [said.mixed, said.loose]) {
    t.ok(most <= said.max)
    t.ok(grew < bytes * 1.25, `${grew} bytes for ${bytes} of ${lines} lines`)
  }
})

test('every cut and every changed byte of records is refused or read, and what was kept can be shown', (t) => {
  const good = encoded([{ trace: 1, span: 1, attributes: { a: 'b' } }, { text: HOSTILE }])
  const store = new TraceStore()
  store.receive(encodeRequest(spansOf([request])))
  let taken = 0
  let refused = 0
  const receive = (body) => {
    try {
      store.receiveLines(body)
      taken++
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      refused++
    }
  }
  for (let at = 0; at < good.length; at++) {
    receive(good.subarray(0, at))
    for (const value of [0, 0x7f, 0xff, good[at] ^ 1, good[at] + 1]) receive(Buffer.from(good).fill(value, at, at + 1))
  }
  t.ok(taken > 100 && refused > 100)
  const filter = filterOf(new URLSearchParams('q=nowhere'))
  for (const trace of store.newestFirst()) {
    filter.matchesWithin(trace, Infinity)
    rowsOf(trace)
    textOf(trace, { attributes: true })
    JSON.parse(otlpText(trace.spans, trace.lines))
  }
  for (const bad of [{ resourceLogs: 5 }, { resourceLogs: [{ scopeLogs: [{ logRecords: ['x'] }] }] }, { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: 'x' }] }] }] }]) {
    t.throws(() => logsFromJson(bad), /is not/)
  }
  t.end()
})

test('text of a log line cannot drive a terminal, and stays on one line for an assistant', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request])
  await sendLogs(viewer, [{ trace: 1, span: 1, text: HOSTILE, attributes: { [HOSTILE]: HOSTILE, 'exception.type': HOSTILE } }])
  const input = [['get_trace', { id: 'last' }], ['search_logs', { level: 'info', q: 'script' }], ['search_logs', { q: 'nowhere' }]]
    .map(([name, given], id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: given } })).join('\n')
  const mcp = (await runCommand(t, ['mcp', '--port', String(viewer.port)], { input }).exit).stdout.trim().split('\n').map(JSON.parse).sort((a, b) => a.id - b.id)
  const [tree, search, none] = mcp.map(({ result }) => result.content[0].text)
  t.match(search, new RegExp(`^2025-11-21T\\S+ {2}INFO {2}\\\\u001b\\]0;owned.* {2}shop {2}${traceId(1)}$`))
  t.equal(none, 'No match in 1 line.')
  const { stdout } = await runCommand(t, ['trace', 'last', '--attributes', '--port', String(viewer.port)], { env: { FORCE_COLOR: '1' } }).exit
  const { stdout: json } = await runCommand(t, ['trace', 'last', '--json', '--port', String(viewer.port)]).exit
  // eslint-disable-next-line no-control-regex
  const UNSAFE = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/
  for (const text of [tree, search, json]) t.notMatch(text, UNSAFE)
  // eslint-disable-next-line no-control-regex
  t.notMatch(stdout.replace(/\u001b\[(?:1|2|22|31|33|39)m/g, ''), UNSAFE, 'but for our own colours')
  t.match(stdout, /\\u001b\]0;owned\\u0007/)
})

test('export, import and --save keep lines', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request])
  await sendLogs(viewer, [{ trace: 1, span: 1, text: 'kept', severity: 13, attributes: { user: '7' } }])
  const { stdout } = await runCommand(t, ['export', '--port', String(viewer.port)]).exit
  const other = await startViewer(t)
  t.match(await runCommand(t, ['import', '-', '--port', String(other.port)], { input: stdout }).exit, { code: 0, stderr: 'light-trace: 1 span of 1 trace and 1 log line from -\n' })
  t.same(await other.json('/api/traces/last'), await viewer.json('/api/traces/last'))
  const file = join(t.testdir(), 'saved.jsonl')
  const saving = runCommand(t, ['--port', '0', '--save', file])
  const [, url] = await saving.output(/(http:\/\/localhost:\d+) shows what is sent to it/)
  await fetch(`${url}/v1/logs`, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(logsOf([{ text: 'saved' }])) })
  saving.kill('SIGTERM')
  await saving.exit
  t.match(JSON.parse(readFileSync(file, 'utf8')), { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'saved' } }] }] }] })
})

test('log lines are instants in the file for Perfetto, in the lane of their span', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request, call])
  await sendLogs(viewer, [{ trace: 1, span: 2, at: 6, text: HOSTILE, severity: 13, attributes: { user: '7' } }, { trace: 1, span: 9, at: 7 }])
  const { traceEvents } = await viewer.json(`/api/traces/${traceId(1)}/perfetto`)
  const [root, , first, second] = traceEvents.filter(({ ph }) => ph !== 'M')
  t.match(first, { ph: 'i', s: 't', ts: 6000, pid: root.pid, tid: root.tid, args: { attributes: 'user=7' } })
  t.ok(first.name.endsWith(HOSTILE))
  t.match(second, { ts: 7000, name: /a line$/ }, 'of a span that was not received')
})

test('an app\'s log lines are shown without a change in its code, even if it registers light-trace itself', async (t) => {
  const logging = APP.replace("require('fastify')()", "require('fastify')({ logger: { level: 'debug' } })").replace('async (request) => ({', 'async (request) => { request.log.debug({ a: 1 }, \'loading\'); return {').replace('request.params.id }))', 'request.params.id } })')
  const own = logging.replace(/^(const app = .*\n)/m, `$1app.register(require(${JSON.stringify(join(__dirname, '../..'))}))\n`)
  for (const app of [logging, own]) {
    const running = await runApp(t, { files: { 'app.js': app } })
    await fetch(`${running.app}/users/7`)
    const { lines } = await eventually(() => running.json('/api/logs?q=loading'), ({ lines }) => lines.length === 1 && lines[0].row !== null)
    t.match(lines, [{ level: 'debug', text: 'loading', rest: /a=1$/ }])
    running.kill('SIGTERM')
    await running.exit
  }
})

test('an app whose logger is off causes no message, and OTEL_LOGS_EXPORTER=none leaves lines out', async (t) => {
  for (const env of [{}, { OTEL_LOGS_EXPORTER: 'none' }]) {
    const quiet = { ...env, LIGHT_TRACE_BLOCKED_LOOP: 'false' } // a busy machine blocks the loop, which would be reported
    const { app, json, kill, exit, text } = await runApp(t, { env: quiet, files: { 'app.js': env.OTEL_LOGS_EXPORTER ? APP.replace("require('fastify')()", "require('fastify')({ logger: true })") : APP } })
    await fetch(`${app}/users/7`)
    await eventually(() => json('/api/traces'), arrived(1))
    t.match((await json('/api/stats')).lines, { received: 0 })
    kill('SIGTERM')
    await exit
    t.notMatch(text(), /LT_WARN|logs\.export/)
  }
})
