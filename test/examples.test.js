'use strict'

const { readdirSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { runProgram, steady, ROOT } = require('./support/program')
const { startSink } = require('./support/otlp-sink')

const FOLDER = join(ROOT, 'examples')
const examples = readdirSync(FOLDER).filter((name) => /\.m?[jt]s$/.test(name))
const LINES_MAX = 40
const TYPES_ARE_STRIPPED = Number(process.versions.node.split('.')[0]) >= 24

for (const name of examples) {
  test(`examples/${name} runs, and prints what it says it prints`, async (t) => {
    const source = readFileSync(join(FOLDER, name), 'utf8')
    t.ok(source.trimEnd().split('\n').length <= LINES_MAX, `${LINES_MAX} lines at most`)
    if (name.endsWith('.mts') && !TYPES_ARE_STRIPPED) return t.pass('this Node runs no TypeScript')
    const { code, stdout, stderr } = await runProgram([join(FOLDER, name)])
    t.equal(code, 0, stderr)
    const promised = promisedOutput(source)
    if (name === 'testing.js') t.match(stdout, /^# pass 1$|pass 1$/m)
    else t.equal(steady(stdout).trimEnd(), promised)
  })
}

test('--import light-trace/register traces an app that does not know of it, as the README says', async (t) => {
  const program = `
    const app = require('fastify')()
    app.get('/hello', async () => 'hello')
    app.inject('/hello').then(() => app.close())`
  const { code, stdout, stderr } = await runProgram(['--import', 'light-trace/register', '-e', program], { OTEL_TRACES_EXPORTER: 'console' })
  t.equal(code, 0, stderr)
  t.equal(steady(stdout), 'SERVER GET /hello … ms trace_id=…\n')
})

test('the demo shows its spans and ends by itself', async (t) => {
  const { code, stdout, stderr } = await runProgram([join(FOLDER, 'demo')])
  t.equal(code, 0, stderr)
  t.equal(stderr, '')
  for (const line of [
    'GET /users/7?tab=orders → 200', '    INTERNAL load user  … ms', '        SERVER GET /stock/:item  … ms',
    '  SERVER POST /orders ERROR error.type=BANK_TIMEOUT  … ms', '  SERVER GET /report  … ms', '  SERVER GET /export  … ms'
  ]) t.ok(steady(stdout).split('\n').includes(line), line)
  t.match(stdout, /Set OTEL_EXPORTER_OTLP_ENDPOINT/)
})

test('the demo sends the spans that it shows to OTEL_EXPORTER_OTLP_ENDPOINT', async (t) => {
  const sink = await startSink(t)
  const { code, stdout } = await runProgram([join(FOLDER, 'demo')], { OTEL_EXPORTER_OTLP_ENDPOINT: new URL(sink.url).origin })
  t.equal(code, 0)
  const drawn = stdout.split('\n').filter((line) => /^ +(?:SERVER|INTERNAL|CLIENT) .* ms$/.test(line))
  t.equal(sink.spans.length, drawn.length)
  t.ok(sink.spans.length > 6)
  t.ok(sink.spans.every(({ resource }) => resource['service.name'] === 'light-trace-demo'))
  const [, traceId] = /traceId +([0-9a-f]{32})/.exec(stdout)
  t.ok(sink.spans.some((span) => span.traceId === traceId))
  t.match(stdout, new RegExp(`${drawn.length} spans delivered, 0 lost`))
})

test('the demo ends well where nothing listens at OTEL_EXPORTER_OTLP_ENDPOINT', async (t) => {
  const { code, stdout } = await runProgram([join(FOLDER, 'demo')], { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })
  t.equal(code, 0)
  t.match(stdout, /0 spans delivered, \d+ lost/)
})

function promisedOutput (source) {
  const [, comment = ''] = source.split('\n// Prints:\n')
  return comment.trimEnd().split('\n').map((line) => line.replace(/^\/\/ ?/, '')).join('\n')
}
