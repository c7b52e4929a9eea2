'use strict'

// Compares each log record with the line that pino printed. OpenTelemetry's decoder for Python reads the records.

const { execFileSync } = require('node:child_process')
const { createServer } = require('node:http')
const { once } = require('node:events')
const { join } = require('node:path')
const { isDeepStrictEqual } = require('node:util')
const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { randomFrom } = require('../support/random')

const EXCEPTION = { type: 'exception.type', message: 'exception.message', stack: 'exception.stacktrace' }
const EXCEPTION_OF_CODE = { ...EXCEPTION, type: 'err.type' } // its code is the type, as on spans
const LEVELS = { 20: ['debug', 5], 30: ['info', 9], 40: ['warn', 13], 50: ['error', 17], 60: ['fatal', 21] }
const CLOCKS_MS = 100 // maximum difference between the monotonic clock, set at startup, and the wall clock

test('each record has the content of its line', async (t) => {
  const bodies = []
  const collector = createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.url === '/v1/logs') bodies.push(Buffer.concat(chunks).toString('hex'))
    response.end()
  }).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  t.teardown(() => collector.close())
  const lines = []
  const app = Fastify({ logger: { level: 'debug', stream: { write: (line) => { lines.push(JSON.parse(line)) } } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { serviceName: 'shop', registerGlobals: false, exporter: { url: `http://127.0.0.1:${collector.address().port}` }, logs: { export: true } })
  const random = randomFrom(5)
  const one = (...list) => list[Math.floor(random() * list.length)]
  const value = (depth) => one(
    () => one('', 'plain', 'quo"te', 'line\nbreak', '\u0001', '\u20ac \ud83d\ude00', 'x'.repeat(300), 'y'.repeat(3000)),
    () => one(0, -1, 300, 1.5, -2.25, 2 ** 53 - 1, 1e-7, 12.000001, 0.1 + 0.2),
    () => one(true, false, null),
    () => depth > 2 ? 'deep' : Array.from({ length: random() * 4 }, () => value(depth + 1)),
    () => depth > 2 ? 'deep' : Object.fromEntries(Array.from({ length: random() * 4 }, (_, i) => [`k${i}`, value(depth + 1)])),
    () => Object.assign(new TypeError('no'), { code: 'E_NO' })
  )()
  app.get('/', async ({ log }) => {
    for (let i = 0; i < 10; i++) log[one('debug', 'info', 'warn', 'error', 'fatal')]({ a: value(0), [one('b', 'err')]: value(0) }, one('said', 'quo"te', '\u20ac'))
    return 'ok'
  })
  for (let i = 0; i < 50; i++) await app.inject('/')
  const end = Date.now()
  await app.lightTrace.flush()
  const records = execFileSync(process.env.LIGHT_TRACE_PYTHON, [join(__dirname, 'read_logs.py')], { input: bodies.join('\n'), encoding: 'utf8', maxBuffer: 2 ** 28 })
    .trim().split('\n').map((line) => JSON.parse(line))
  t.equal(records.length, lines.length)
  t.equal(lines.length, 601) // ten and two of Fastify's per request, and one of light-trace's
  for (const [i, line] of lines.entries()) {
    const { attributes, body, time, observedTime, ...record } = records[i]
    const { level, time: printed, pid, hostname, msg, trace_id: traceId, span_id: spanId, trace_flags: flags, ...members } = line
    const isError = typeof members.err === 'object' && members.err !== null && !Array.isArray(members.err)
    const code = typeof line.err?.code === 'string' ? { 'exception.type': line.err.code } : undefined
    const names = code === undefined ? EXCEPTION : EXCEPTION_OF_CODE
    const expected = isError
      ? Object.fromEntries(Object.entries(members).flatMap(([key, said]) => key === 'err' ? Object.entries(said).map(([name, part]) => [(typeof part === 'string' && names[name]) || `err.${name}`, part]) : [[key, said]]))
      : members
    if (!isDeepStrictEqual(attributes, { ...expected, ...code })) t.same(attributes, { ...expected, ...code }, JSON.stringify(line))
    if (body !== msg || time !== observedTime) t.same([body, time], [msg, observedTime])
    const [severityText, severityNumber] = LEVELS[level]
    t.match(record, { severityText, severityNumber, scope: 'pino', dropped: 0, resource: { 'service.name': 'shop' }, ...traceId !== undefined && { traceId, spanId, flags: Number(flags) } })
    // The two clocks are read one after the other. Even if the CPU is taken away in between, the next line is written later.
    const at = Number(BigInt(time) / 1_000_000n)
    if (at < printed - CLOCKS_MS || at > (lines[i + 1]?.time ?? end) + CLOCKS_MS) t.equal(at, printed, 'the same time')
  }
})
