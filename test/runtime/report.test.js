'use strict'

const fastify = require('fastify')
const { test } = require('tap')
const codes = require('../../lib/runtime/codes.json')
const { printable, Report, Said } = require('../../lib/runtime/report')

test('each code is logged as often as its row in the table allows', (t) => {
  for (const [code, { often, per }] of Object.entries(codes)) {
    const log = recorder()
    const clock = { ms: 0 }
    const report = new Report(log, 'info', new Said(() => clock.ms))
    for (const subject of ['a', 'b']) {
      for (const ms of [0, 29_999, 30_000]) {
        clock.ms = ms
        report.warn(code, `${subject} ${ms}`, subject)
      }
    }
    const times = { thrown: ['0'], once: ['0'], 'once in 30 s': ['0', '30000'], 'each time': ['0', '29999', '30000'] }[often]
    const all = (subject) => times.map((ms) => `${subject} ${ms}`)
    t.same(log.lines.map(([, , message]) => message), often === 'each time' || per !== undefined ? [...all('a'), ...all('b')] : all('a'), code)
  }
  t.end()
})

test('a code is logged once for each app, to its logger', (t) => {
  const log = recorder()
  const report = new Report(log)
  t.equal(report.warn('LT_WARN_KEEP', 'first'), true)
  t.equal(report.warn('LT_WARN_KEEP', 'again'), false)
  t.equal(report.warn('LT_WARN_LOGGER', 'other'), true)
  new Report(log).warn('LT_WARN_KEEP', 'another app')
  t.same(log.lines, [['warn', { code: 'LT_WARN_KEEP' }, 'first'], ['warn', { code: 'LT_WARN_LOGGER' }, 'other'], ['warn', { code: 'LT_WARN_KEEP' }, 'another app']])
  t.end()
})

test('a code that several apps share is logged by the first of them', (t) => {
  const logs = [recorder(), recorder()]
  const said = new Said()
  for (const log of logs) {
    const report = new Report(log)
    const shared = report.sharing(said)
    shared.warn('LT_WARN_PERMISSION', 'shared', 'http://127.0.0.1:4318')
    shared.warn('LT_WARN_LOSS', 'lost', 'queue_full')
    report.warn('LT_WARN_KEEP', 'its own')
  }
  t.same(logs.map(({ lines }) => lines.map(([, , message]) => message)), [['shared', 'lost', 'its own'], ['its own']])
  t.end()
})

test('a failure is logged once per subject, a code at most a hundred times, and one line covers the others', (t) => {
  const log = recorder()
  const report = new Report(log)
  for (const what of ['spanName failed', 'onEnd failed', 'spanName failed']) report.failed('LT_WARN_CALLBACK', what, new Error('broken'))
  report.attempt('LT_WARN_CALLBACK', 'ignore failed', () => { throw new Error('too') })
  t.same(log.lines.map(([, , message]) => message), ['spanName failed: broken', 'onEnd failed: broken', 'ignore failed: too'])
  for (let i = 0; i < 200; i++) report.warn('LT_WARN_METRIC_OVERFLOW', 'has too many series', `metric ${i}`)
  t.equal(log.lines.length, 3 + 100 + 1)
  report.failed('LT_WARN_CALLBACK', 'onStart failed', new Error('not hidden by these'))
  t.equal(log.lines.length, 3 + 100 + 2)
  t.end()
})

test('code that is not ours may throw or be async by mistake, and its promise does not end the process', async (t) => {
  const log = recorder()
  const report = new Report(log)
  t.equal(report.attempt('LT_WARN_CALLBACK', 'a failed', () => 5), 5)
  t.equal(report.attempt('LT_WARN_CALLBACK', 'b failed', () => { throw new Error('broken') }), undefined)
  t.equal(report.attempt('LT_WARN_CALLBACK', 'c failed', async () => { throw new Error('later') }), undefined)
  await new Promise((resolve) => setImmediate(resolve))
  t.same(log.lines.map(([, , message]) => message), ['b failed: broken', 'c failed: it must return its answer, not a promise'])
})

test('findings at start are one line each, even under the same code', (t) => {
  const log = recorder()
  new Report(log).startup({ warnings: [{ code: 'LT_WARN_ENV', message: 'A' }, { code: 'LT_WARN_ENV', message: 'B' }] })
  t.same(log.lines.map(([, , message]) => message), ['A', 'B'])
  t.end()
})

// Copies of several versions share what was logged about a collector.
test('an unknown code is logged, and nothing is thrown', (t) => {
  const log = recorder()
  const report = new Report(log)
  for (const message of ['x', 'x', 'y']) report.warn('LT_WARN_OF_TOMORROW', message)
  t.same(log.lines.map(([, { code }]) => code), ['LT_WARN_OF_TOMORROW', 'LT_WARN_OF_TOMORROW'])
  t.end()
})

test('with Fastify\'s own logger, the line is visible once, in the log', async (t) => {
  const lines = []
  const app = fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  const warnings = await warningsOf(() => {
    const report = new Report(app.log)
    report.warn('LT_WARN_KEEP', 'logged')
    report.info('not at this level')
  })
  t.match(lines, [{ level: 40, code: 'LT_WARN_KEEP', msg: 'logged' }])
  t.equal(lines.length, 1)
  t.same(warnings, [])
})

// A07
test('if the logger would not print it, it is a process warning', async (t) => {
  const apps = [fastify(), fastify({ logger: { level: 'silent' } }), fastify({ logger: { level: 'error' } })]
  t.teardown(() => Promise.all(apps.map((app) => app.close())))
  const throwing = recorder()
  throwing.warn = () => { throw new Error('broken') }
  const logs = [...apps.map(({ log }) => log), throwing, undefined, null, {}, { level: 'silent', warn () {} }]
  for (const log of logs) {
    const warnings = await warningsOf(() => {
      const report = new Report(log)
      report.warn('LT_WARN_KEEP', 'logged\u001b[31m')
      report.info('information is only for logs')
    })
    t.equal(warnings.length, 1)
    t.match(warnings[0], { name: 'LightTraceWarning', code: 'LT_WARN_KEEP', message: 'logged' })
  }
})

test('OTEL_LOG_LEVEL decides which levels are logged', (t) => {
  const said = (level) => {
    const log = recorder()
    const report = new Report(log, level)
    report.warn('LT_WARN_KEEP', 'x')
    report.info('y')
    return log.lines.map(([kind]) => kind)
  }
  for (const level of ['info', 'debug', 'verbose', 'all']) t.same(said(level), ['warn', 'info'])
  t.same(said('warn'), ['warn'])
  t.same(said('error'), [])
  t.same(said('none'), [])
  t.end()
})

test('a loss is logged at most once in 30 s per kind, and its end once', (t) => {
  const log = recorder()
  const clock = { ms: 0 }
  const report = new Report(log, 'info', new Said(() => clock.ms))
  const loss = (kind, message) => report.warn('LT_WARN_LOSS', message, kind)
  t.equal(report.recovered('queue_full', 'nothing was lost'), false)
  t.equal(loss('queue_full', 'a'), true)
  t.equal(loss('queue_full', 'b'), false)
  t.equal(loss('status 400', 'c'), true)
  t.equal(report.recovered('queue_full', 'd'), true)
  t.equal(report.recovered('queue_full', 'e'), false)
  clock.ms = 29_999
  t.equal(loss('queue_full', 'f'), false)
  t.equal(report.recovered('queue_full', 'of an unlogged loss'), false)
  clock.ms = 30_000
  t.equal(loss('queue_full', 'g'), true)
  t.equal(report.recovered('queue_full', 'h'), true)
  t.same(log.lines.map(([, { code }, message]) => `${code} ${message}`),
    ['LT_WARN_LOSS a', 'LT_WARN_LOSS c', 'LT_WARN_RECOVERED d', 'LT_WARN_LOSS g', 'LT_WARN_RECOVERED h'])
  t.end()
})

// K06
test('the 30 s are measured with the monotonic clock', (t) => {
  const report = new Report(recorder())
  const wallClock = Date.now
  t.teardown(() => { Date.now = wallClock })
  report.warn('LT_WARN_LOSS', 'a', 'queue_full')
  Date.now = () => wallClock() + 3_600_000
  t.equal(report.warn('LT_WARN_LOSS', 'an hour later by the wall clock', 'queue_full'), false)
  t.end()
})

test('text from outside is one line of limited length, without control characters', (t) => {
  const cases = [
    ['plain ünïcode 名前 😀', 'plain ünïcode 名前 😀'],
    ['a\r\nb\tc\u2028d\u2029e\u0085f', 'a  b c d e f'],
    ['\u001b[31;1mred\u001b[0m \u001b]0;title\u0007', 'red ]0;title'],
    ['\u001b[', ''],
    ['\u001b', ''],
    ['\u009b31mred', '31mred'],
    ['\0a\u0008b\u007fc', 'abc'],
    ['user\u202egnp.exe\u2066x\u2069\u200f\u061c\ufeff', 'usergnp.exex'],
    ['\ud800x\udc00', '\ufffdx\ufffd'],
    ['x'.repeat(300), 'x'.repeat(256)],
    ['x'.repeat(255) + '😀', 'x'.repeat(255) + '\ufffd'],
    ['\u001b'.repeat(1e6), ''],
    [undefined, ''],
    [null, ''],
    [5, '5'],
    [1n, '1'],
    [Symbol('x'), '[symbol]'],
    [{ toString () { throw new Error('no') } }, '[object]']
  ]
  for (const [value, expected] of cases) t.equal(printable(value), expected)
  t.end()
})

// A logger in which each level is a separate function, as in pino.
function recorder () {
  const lines = []
  const log = { lines }
  for (const level of ['fatal', 'error', 'warn', 'info', 'debug', 'trace']) log[level] = (...line) => lines.push([level, ...line])
  return log
}

// Process warnings are emitted on the next tick.
async function warningsOf (act) {
  const warnings = []
  const listen = (warning) => warnings.push(warning)
  process.on('warning', listen)
  act()
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', listen)
  return warnings
}
