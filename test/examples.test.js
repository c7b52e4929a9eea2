'use strict'

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { readdirSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { parse } = require('yaml')
const { without } = require('./support/features')
const { runProgram, steady, ROOT } = require('./support/program')
const { startSink } = require('./support/otlp-sink')

const FOLDER = join(ROOT, 'examples')
const examples = readdirSync(FOLDER).filter((name) => /\.m?[jt]s$/.test(name))
const LINES_MAX = 40
const TYPES_ARE_STRIPPED = Number(process.versions.node.split('.')[0]) >= 24

for (const name of examples) {
  test(`examples/${name} runs and prints the documented output`, async (t) => {
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

test('examples/tests-with-budgets: the workflow reports the effect of a change, and fails over budget', { skip: without('viewer') }, async (t) => {
  const example = (name) => readFileSync(join(FOLDER, 'tests-with-budgets', name), 'utf8')
  const project = (app) => ({
    'package.json': example('package.json'),
    'app.js': app,
    'app.test.js': example('app.test.js'),
    'light-trace.budget.json': example('light-trace.budget.json'),
    node_modules: {
      '.bin': { 'light-trace': t.fixture('symlink', join(ROOT, 'viewer/cli.js')) },
      'light-trace': t.fixture('symlink', ROOT),
      fastify: t.fixture('symlink', join(ROOT, 'node_modules/fastify'))
    }
  })
  const more = example('app.js').replace('return items', 'await (await fetch(`${stock}/items/jug`)).text()\n    return items') // eslint-disable-line no-template-curly-in-string
  const folder = t.testdir({ ...project(more), base: project(example('app.js')) })
  const summary = join(folder, 'summary.md')
  const { on, jobs: { check: { steps } } } = parse(example('light-trace.yml'))
  t.equal(on, 'pull_request')
  const codes = []
  for (const { run, 'working-directory': at = '.' } of steps.filter(({ run }) => run !== undefined && !run.startsWith('npm ci'))) {
    const child = spawn('sh', ['-c', `unset NODE_OPTIONS; ${run}`], { cwd: join(folder, at), env: { ...process.env, GITHUB_STEP_SUMMARY: summary }, stdio: 'ignore' })
    codes.push((await once(child, 'exit'))[0])
  }
  t.same(codes, [0, 0, 1])
  t.equal(readFileSync(summary, 'utf8'), `### light-trace

Over budget: 1 route. Changed: 1 route.

\`\`\`
GET /orders/:id: http: 4 calls, 3 allowed

  SERVER GET /orders/:id  (app.js:11)
    INTERNAL handler
${'      CLIENT GET 127.0.0.1/items/X  <-- http\n'.repeat(4)}\`\`\`

#### \`GET /orders/:id\`

\`\`\`diff
! spans: 5 → 6
! calls of http: 3 → 4
+ INTERNAL handler > CLIENT GET 127.0.0.1/items/jug
\`\`\`
`.replace('X', 'tea').replace('X', 'cup').replace('X', 'pot').replace('X', 'jug'))
})

test('--import light-trace/register traces an app that does not mention it, as in the README', async (t) => {
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

test('the demo ends normally if nothing listens at OTEL_EXPORTER_OTLP_ENDPOINT', async (t) => {
  const { code, stdout } = await runProgram([join(FOLDER, 'demo')], { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })
  t.equal(code, 0)
  t.match(stdout, /0 spans delivered, \d+ lost/)
})

function promisedOutput (source) {
  const [, comment = ''] = source.split('\n// Prints:\n')
  return comment.trimEnd().split('\n').map((line) => line.replace(/^\/\/ ?/, '')).join('\n')
}
