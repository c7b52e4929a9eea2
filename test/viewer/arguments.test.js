'use strict'

// The command line, and the environment of the app that it starts.

const { test } = require('tap')
const { parseArguments } = require('../../viewer/commands/arguments')
const { appEnvironment } = require('../../viewer/commands/environment')
const { wordForCmd } = require('../../viewer/commands/run-program')
const { runCommand } = require('./command')

test('our options come before the app\'s name, and everything after it belongs to the app', (t) => {
  process.chdir(t.testdir({ 'app.js': '', 'dist.mjs': '', 'tail.js': '' }))
  const program = (...args) => parseArguments(args)
  t.match(program(), { command: 'serve', program: null, options: {} })
  t.match(program('app.js', '--port', '1'), { program: ['app.js', '--port', '1'], options: {} })
  t.match(program('--port', '1', '--watch', 'app.js', 'x'), { program: ['app.js', 'x'], options: { port: 1, watch: true } })
  t.match(program('--port=0', '--', 'app.js'), { program: ['app.js'], options: { port: 0 } })
  t.match(program('app'), { program: ['app'] }, 'without its extension')
  t.match(program('--inspect', '--env-file=.env', '--max-old-space-size=100', 'dist.mjs'), { program: ['dist.mjs'], nodeOptions: ['--inspect', '--env-file=.env', '--max-old-space-size=100'] })
  t.match(program('node', '--inspect', 'app.js', '-x'), { program: ['app.js', '-x'], nodeOptions: ['--inspect'] })
  t.match(program('--import', 'tsx', '-r', './env.js', 'app.js', '--import', 'x'), { program: ['app.js', '--import', 'x'], nodeOptions: ['--import', 'tsx', '-r', './env.js'] })
  t.match(program('node', '--import', 'tsx', 'app.js'), { program: ['app.js'], nodeOptions: ['--import', 'tsx'] })
  const shell = process.platform === 'win32' ? 'cmd' : 'sh'
  t.match(program(shell, '-c', 'true'), { program: [shell, '-c', 'true'] })
  t.match(program('tail', 'app.js'), { command: 'tail', program: ['app.js'] })
  t.match(program('--port', '5', 'tail'), { command: 'tail', program: null, options: { port: 5 } }, 'a command may stand behind options')
  t.match(program('--json', 'trace', 'last'), { command: 'trace', operand: 'last', options: { json: true } })
  t.match(program('--', 'tail', '-f'), { command: 'serve', program: ['tail', '-f'] })
  t.match(program('trace', 'last', '--json', '--port', '5'), { command: 'trace', operand: 'last', options: { json: true, port: 5 } })
  t.match(program('import', '-'), { command: 'import', operand: '-' })
  t.match(program('export'), { command: 'export', operand: undefined })
  t.equal(program('--max-bytes', '1.5gb').options['max-bytes'], 1.5 * 2 ** 30)
  t.equal(program('--max-bytes=8MiB').options['max-bytes'], 8 * 2 ** 20)
  t.match(program('app.js', '--help'), { command: 'serve' })
  t.match(program('--help', 'app.js'), { command: 'help' })
  t.match(program('-v'), { command: 'version' })
  t.end()
})

test('on Windows a command goes through cmd.exe as it was given', async (t) => {
  t.same(['npm', '--port=1', 'C:\\app\\run.cmd', 'C:\\Program Files\\a\\', 'a & b', 'say "x"', '', 'a^b'].map(wordForCmd),
    ['npm', '--port=1', 'C:\\app\\run.cmd', '"C:\\Program Files\\a\\\\"', '"a & b"', '"say ""x"""', '""', '"a^b"'])
})

test('the message about a mistake suggests the right word', (t) => {
  process.chdir(t.testdir({ 'app.js': '' }))
  const says = (...args) => {
    try {
      return parseArguments(args)
    } catch (error) {
      return error.expected ? error.message : error
    }
  }
  t.match(says('--prot', '1'), /^unknown option --prot\. Did you mean --port\? See --help$/)
  t.match(says('tial'), /^there is no file, program or command "tial"\. Did you mean tail\? See --help$/)
  t.match(says('--port', 'x'), /--port must be a number from 0 to 65535, not "x"/)
  t.match(says('--port', '65536'), /--port must be a number/)
  t.match(says('--port'), /--port needs a value/)
  t.match(says('--watch=1', 'app.js'), /--watch takes no value/)
  t.match(says('--watch'), /^--watch needs an app$/)
  t.match(says('--inspect'), /^--inspect needs an app$/)
  t.match(says('--max-bytes', '5'), /at least 1mb/)
  t.match(says('--url', 'https://x'), /--url must be an address/)
  t.match(says('--editor', 'javascript'), /--editor must be one of vscode, .*none, not "javascript"/)
  t.match(says('metrics', '--kind', 'timer'), /^--kind must be one of gauge, .*summary, not "timer"$/)
  t.match(says('tail', '--url', 'http://127.0.0.1:4318', __filename), /^tail takes an app or --url, not both$/)
  t.match(says('trace'), /^trace needs an id, last, slowest or failed$/)
  t.match(says('import'), /import needs a file/)
  t.match(says('trace', 'last', 'more'), /trace does not take "more"/)
  t.end()
})

test('a mistake ends the command with code 2, --help and --version with 0', async (t) => {
  t.match(await runCommand(t, ['--prot', '1']).exit, { code: 2, stdout: '', stderr: /^light-trace: unknown option --prot/ })
  t.match(await runCommand(t, ['--help']).exit, { code: 0, stdout: /npx light-trace app\.js/, stderr: '' })
  t.match(await runCommand(t, ['--version']).exit, { code: 0, stdout: `${require('../../package.json').version}\n` })
})

test('every exporter of the app points at the viewer, and the user is told which of their settings are ignored', (t) => {
  const { env, notes } = appEnvironment({
    PATH: '/bin',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://vendor.example',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://vendor.example/v1/traces',
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=secret',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_TRACES_EXPORTER: 'none',
    OTEL_LOGS_EXPORTER: 'console',
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'https://vendor.example/v1/logs',
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://vendor.example/v1/metrics',
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'api-key=secret',
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'grpc',
    OTEL_METRICS_EXPORTER: 'console',
    OTEL_SERVICE_NAME: 'shop'
  }, { port: 4319, token: null })
  t.same(env, {
    PATH: '/bin',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4319',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_LOGS_EXPORTER: 'otlp',
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/protobuf',
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_METRIC_EXPORT_INTERVAL: '5000',
    OTEL_METRIC_EXPORT_TIMEOUT: '5000',
    OTEL_SERVICE_NAME: 'shop',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_BLRP_SCHEDULE_DELAY: '100',
    LIGHT_TRACE_VIEWER: 'http://127.0.0.1:4319',
    LIGHT_TRACE_BLOCKED_LOOP: 'true'
  })
  t.equal(notes.length, 11)
  t.notMatch(notes.join(), /secret/)
  const own = appEnvironment({ OTEL_BSP_SCHEDULE_DELAY: '5000', OTEL_SDK_DISABLED: 'true' }, { port: 4318, host: '::', token: 'token' })
  t.match(own.env, { OTEL_BSP_SCHEDULE_DELAY: '5000', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', LIGHT_TRACE_VIEWER_TOKEN: 'token' })
  t.match(own.notes, [/OTEL_SDK_DISABLED/])
  t.equal(appEnvironment({ OTEL_LOGS_EXPORTER: 'none' }, { port: 1, token: null }).env.OTEL_LOGS_EXPORTER, 'none', 'the way to see no lines')
  t.same(appEnvironment({}, { port: 1, token: null }).notes, [])
  t.end()
})

test('metrics are on unless the user has turned them off', (t) => {
  const of = (given) => {
    const { env, notes } = appEnvironment(given, { port: 1, token: null })
    return [env.OTEL_METRICS_EXPORTER, env.OTEL_METRIC_EXPORT_INTERVAL, env.OTEL_METRIC_EXPORT_TIMEOUT, notes.length]
  }
  t.same(of({}), ['otlp', '5000', '5000', 0])
  t.same(of({ OTEL_METRICS_EXPORTER: 'none' }), ['none', undefined, undefined, 0])
  t.same(of({ OTEL_METRICS_EXPORTER: 'prometheus' }), ['otlp,prometheus', '5000', '5000', 0], 'Prometheus goes on scraping')
  t.same(of({ OTEL_METRIC_EXPORT_INTERVAL: '1000' }), ['otlp', '1000', '1000', 0])
  t.same(of({ OTEL_METRIC_EXPORT_INTERVAL: '90000' }), ['otlp', '90000', '30000', 0])
  t.same(of({ OTEL_METRIC_EXPORT_TIMEOUT: '8000' }), ['otlp', '8000', '8000', 0], 'the SDK throws for a timeout that is longer than the interval')
  t.same(of({ OTEL_METRIC_EXPORT_INTERVAL: 'soon' }), ['otlp', 'soon', '30000', 0])
  t.end()
})
