'use strict'

const fastify = require('fastify')
const { test } = require('tap')
const { printable } = require('../../lib/runtime/report')
const { Report } = require('../../lib/runtime/report')

test('a code is logged once for each app, to its logger', (t) => {
  const log = recorder()
  const report = new Report(log)
  t.equal(report.once('LT_WARN_A', 'first'), true)
  t.equal(report.once('LT_WARN_A', 'again'), false)
  t.equal(report.once('LT_WARN_B', 'other'), true)
  new Report(log).once('LT_WARN_A', 'another app')
  t.same(log.lines, [['warn', { code: 'LT_WARN_A' }, 'first'], ['warn', { code: 'LT_WARN_B' }, 'other'], ['warn', { code: 'LT_WARN_A' }, 'another app']])
  t.end()
})

test('what fails is logged once for each subject, and no more than a hundred of them', (t) => {
  const log = recorder()
  const report = new Report(log)
  for (const what of ['spanName failed', 'onEnd failed', 'spanName failed']) report.failed('LT_WARN_A', what, new Error('broken'))
  report.attempt('LT_WARN_A', 'ignore failed', () => { throw new Error('too') })
  t.same(log.lines.map(([, , message]) => message), ['spanName failed: broken', 'onEnd failed: broken', 'ignore failed: too'])
  for (let i = 0; i < 200; i++) report.onceFor(`metric ${i}`, 'LT_WARN_B', 'has too many series')
  t.equal(log.lines.length, 3 + 97 + 1, 'the last for all others')
  t.end()
})

test('what was found at start is one line each, also under the same code', (t) => {
  const log = recorder()
  new Report(log).startup({ warnings: [{ code: 'LT_WARN_ENV', message: 'A' }, { code: 'LT_WARN_ENV', message: 'B' }] })
  t.same(log.lines.map(([, , message]) => message), ['A', 'B'])
  t.end()
})

test('with Fastify\'s own logger the line is visible once, in the log', async (t) => {
  const lines = []
  const app = fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  const warnings = await warningsOf(() => {
    const report = new Report(app.log)
    report.once('LT_WARN_A', 'logged')
    report.info('not at this level')
  })
  t.match(lines, [{ level: 40, code: 'LT_WARN_A', msg: 'logged' }])
  t.equal(lines.length, 1)
  t.same(warnings, [])
})

// A07
test('where the logger would not print it, it is a process warning', async (t) => {
  const apps = [fastify(), fastify({ logger: { level: 'silent' } }), fastify({ logger: { level: 'error' } })]
  t.teardown(() => Promise.all(apps.map((app) => app.close())))
  const throwing = recorder()
  throwing.warn = () => { throw new Error('broken') }
  const logs = [...apps.map(({ log }) => log), throwing, undefined, null, {}, { level: 'silent', warn () {} }]
  for (const log of logs) {
    const warnings = await warningsOf(() => {
      const report = new Report(log)
      report.once('LT_WARN_A', 'logged\u001b[31m')
      report.info('news are for logs')
    })
    t.equal(warnings.length, 1)
    t.match(warnings[0], { name: 'LightTraceWarning', code: 'LT_WARN_A', message: 'logged' })
  }
})

test('OTEL_LOG_LEVEL decides what is said at all', (t) => {
  const said = (level) => {
    const log = recorder()
    const report = new Report(log, level)
    report.once('LT_WARN_A', 'x')
    report.info('y')
    return log.lines.map(([kind]) => kind)
  }
  for (const level of ['info', 'debug', 'verbose', 'all']) t.same(said(level), ['warn', 'info'])
  t.same(said('warn'), ['warn'])
  t.same(said('error'), [])
  t.same(said('none'), [])
  t.end()
})

test('a loss is logged at most once in 30 s for each kind, and its end once', (t) => {
  const log = recorder()
  let now = 0
  const report = new Report(log, 'info', () => now)
  t.equal(report.recovered('queue_full', 'nothing was lost'), false)
  t.equal(report.loss('queue_full', 'a'), true)
  t.equal(report.loss('queue_full', 'b'), false)
  t.equal(report.loss('status 400', 'c'), true)
  t.equal(report.recovered('queue_full', 'd'), true)
  t.equal(report.recovered('queue_full', 'e'), false)
  now = 29_999
  t.equal(report.loss('queue_full', 'f'), false)
  t.equal(report.recovered('queue_full', 'of a loss that was not logged'), false)
  now = 30_000
  t.equal(report.loss('queue_full', 'g'), true)
  t.equal(report.recovered('queue_full', 'h'), true)
  t.same(log.lines.map(([, { code }, message]) => `${code} ${message}`),
    ['LT_WARN_LOSS a', 'LT_WARN_LOSS c', 'LT_WARN_RECOVERED d', 'LT_WARN_LOSS g', 'LT_WARN_RECOVERED h'])
  t.end()
})

// K06
test('the 30 s are those of the monotonic clock', (t) => {
  const log = recorder()
  const report = new Report(log)
  const wallClock = Date.now
  t.teardown(() => { Date.now = wallClock })
  report.loss('queue_full', 'a')
  Date.now = () => wallClock() + 3_600_000
  t.equal(report.loss('queue_full', 'an hour later, says the wall clock'), false)
  t.end()
})

test('text from outside is one line without controls, of bounded length', (t) => {
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

// A logger in which each level is a function of its own, as in pino.
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
