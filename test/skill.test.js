'use strict'

// Follows skills/light-trace/SKILL.md step by step, in a folder with the contents of an installation.

const { readFileSync } = require('node:fs')
const { basename, dirname, join } = require('node:path')
const { test } = require('tap')
const { without } = require('./support/features')
const { startSink } = require('./support/otlp-sink')
const { runCommand } = require('./viewer/command')
const { ROOT, runProgram } = require('./support/program')

const FILE = join(ROOT, 'skills', 'light-trace', 'SKILL.md')
const LINES_MAX = 100
const text = readFileSync(FILE, 'utf8')
const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language, code]) => ({ language, code }))
const commands = blocks.filter(({ language }) => language === 'sh').map(({ code }) => code.trim())
const files = Object.fromEntries(blocks.filter(({ language }) => language === 'js').map(({ code }) => [/^\/\/ (\S+)\n/.exec(code)[1], code]))

test('the skill has the front matter that assistants read, and is short', async (t) => {
  const [, head] = /^---\n(.*?)\n---\n/s.exec(text)
  const { name, description, ...others } = Object.fromEntries(head.split('\n').map((line) => /^(\w+): (.+)$/.exec(line).slice(1)))
  t.equal(name, basename(dirname(FILE)))
  t.match(name, /^[a-z0-9-]{1,64}$/)
  t.ok(description.length > 50 && description.length <= 1024)
  t.notMatch(description, /[<>]|: /)
  t.same(others, {})
  t.ok(text.trimEnd().split('\n').length <= LINES_MAX, `${LINES_MAX} lines at most`)
  t.same(Object.keys(files), ['tracing.js', 'app.js', 'orders.js', 'app.test.js', 'check.js'], 'every block of JavaScript is run below')
})

test('it installs this package and its peers', async (t) => {
  const { name, peerDependencies } = require('../package.json')
  t.equal(commands[0], `npm install ${[name, ...Object.keys(peerDependencies)].join(' ')}`)
})

test('its app answers and delivers, as stats() shows', async (t) => {
  const sink = await startSink(t)
  const { code, stdout, stderr } = await run(t, ['check.js'], { OTEL_EXPORTER_OTLP_ENDPOINT: new URL(sink.url).origin })
  t.equal(code, 0, stderr)
  t.match(stdout, /^native delivered 2 unsampled 0 dropped \{\} null$/m, 'as in the skill')
  t.same(sink.spans.map(({ name }) => name).sort(), ['GET /orders/:id', 'load order'])
  t.match(sink.spans.find(({ kind }) => kind === 'SERVER'), { attributes: { 'order.id': '7' }, resource: { 'service.name': 'shop' } })
})

test('omitted attributes are not exported, and a child span inherits', { skip: without('omit') || without('inherit') }, async (t) => {
  const sink = await startSink(t)
  const { code, stderr } = await run(t, ['check.js'], { OTEL_EXPORTER_OTLP_ENDPOINT: new URL(sink.url).origin })
  t.equal(code, 0, stderr)
  const [server, child] = ['SERVER', 'INTERNAL'].map((wanted) => sink.spans.find(({ kind }) => kind === wanted))
  t.same(Object.keys(server.attributes).filter((key) => /^(?:client\.address|network\.peer\..*|user_agent\.original)$/.test(key)), [])
  t.equal(child.attributes['order.id'], '7')
})

test('in production a failed request is kept, and a secret of another one is masked', { skip: without('keep') }, async (t) => {
  const sink = await startSink(t)
  const requests = `require('./app')({ logs: false }).then(async (app) => {
    await app.inject('/orders/8')
    await app.inject({ url: '/orders/7?voucher=X1&page=2', headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } })
    await app.inject('/health')
    await app.close()
  })`
  const { code, stderr } = await run(t, ['-e', requests], { NODE_ENV: 'production', OTEL_EXPORTER_OTLP_ENDPOINT: new URL(sink.url).origin })
  t.equal(code, 0, stderr)
  const [failed, masked] = [500, 200].map((status) => sink.spans.find(({ attributes }) => attributes['http.response.status_code'] === status))
  t.match(failed, { status: { code: 'ERROR' }, traceState: 'ot=th:0' })
  t.equal(masked.attributes['url.query'], 'voucher=REDACTED&page=2')
  t.notOk(sink.spans.some(({ attributes }) => attributes['url.path'] === '/health'))
})

test('its test passes, and fails if the request changes', { skip: without('testing') }, async (t) => {
  const { code, stdout } = await run(t, ['--test', 'app.test.js'])
  t.equal(code, 0, stdout)
  const changed = { 'orders.js': files['orders.js'].replace("'load order'", "'load something'") }
  t.equal((await run(t, ['--test', 'app.test.js'], {}, changed)).code, 1)
})

test('npx light-trace shows the app\'s requests', { skip: without('viewer') || without('console') || without('logs') || without('log-ids') || without('stages') }, async (t) => {
  const [program, ...args] = commands[1].split(' ').slice(1)
  t.equal(program, 'light-trace')
  const command = runCommand(t, ['--port', '0', ...args], { cwd: project(t), env: { PORT: '0' } })
  const [, origin] = await command.output(/Server listening at (http:\/\/127[\d.:]+)/)
  await fetch(`${origin}/orders/7`)
  await command.output(/SERVER GET \/orders\/:id .*\n {2}INFO .*incoming request.*\n {2}INTERNAL handler .*\n {4}INTERNAL load order/)
  t.equal(commands.length, 2, 'every command is tried')
})

function run (t, args, env = {}, changed = {}) {
  return runProgram(args, env, project(t, changed))
}

function project (t, changed = {}) {
  const installed = ['fastify', '@opentelemetry'].map((name) => [name, t.fixture('symlink', join(ROOT, 'node_modules', name))])
  return t.testdir({ ...files, ...changed, node_modules: { 'light-trace': t.fixture('symlink', ROOT), ...Object.fromEntries(installed) } })
}
