'use strict'

// npx light-trace app.js as a process: signals, exit codes, input, and what continues after the app has exited.

const { writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { runApp, runCommand, eventually, arrived, APP } = require('./command')
const { startViewer } = require('./support')
const { listenFrom } = require('../../viewer/commands/port')

test('a signal to all processes of a group reaches the app once', async (t) => {
  const counting = `${APP}
let count = 0
process.on('SIGINT', () => { if (count++ === 0) setTimeout(() => { console.log('SIGINT came', count); process.exit(0) }, 400) })`
  const { kill, exit } = await runApp(t, { files: { 'app.js': counting }, isGroup: true })
  kill('SIGINT')
  t.match(await exit, { code: 0, stdout: /SIGINT came 1\n/ })
})

test('an app in a second terminal joins the running viewer', async (t) => {
  const viewer = await startViewer(t)
  const { app, text, json } = await runApp(t, { options: ['--port', String(viewer.port)] })
  t.match(text(), new RegExp(`light-trace: http://localhost:${viewer.port}, the viewer of process ${process.pid}, shows the requests of app\\.js\n`))
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces'), arrived(1))
  t.equal(traces[0].route, 'GET /users/:id')
})

test('an app that does not join the running viewer because of an option is told which option', async (t) => {
  const { port } = await startViewer(t)
  const make = () => ({
    async listen (tried) {
      if (tried === port) throw Object.assign(new Error('in use'), { code: 'EADDRINUSE' })
      return tried
    }
  })
  const said = []
  const hint = `port ${port} is used by another light-trace (process ${process.pid}). This viewer uses port ${port + 1} and does not receive what is sent to ${port}. Without --stay, the app would send to that viewer`
  // The running viewer is asked for its name with a time limit, which a busy machine may exceed.
  for (let tries = 0; tries < 50 && said.at(-1) !== hint; tries++) await listenFrom(make, { port }, (text) => { said.push(text) }, { own: 'stay' })
  t.equal(said.at(-1), hint)
})

test('a command is traced with every Node process in it', async (t) => {
  const { json, app } = await runApp(t, { program: 'sh', args: ['-c', 'exec node app.js'] })
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces'), arrived(1))
  t.equal(traces[0].route, 'GET /users/:id')
})

test('`node app.js` runs app.js, and options of Node are passed on', async (t) => {
  const { app } = await runApp(t, { program: 'node', args: ['--max-old-space-size=300', 'app.js', 'one'] })
  t.match(await (await fetch(`${app}/given`)).json(), { args: ['one'], execArgv: 3 })
})

test('the command exits with the app\'s code', async (t) => {
  const { app, exit } = await runApp(t)
  await fetch(`${app}/exit`)
  t.match(await exit, { code: 7, signal: null })
})

test('an app that cannot be started ends the command with the app\'s own message', async (t) => {
  const { code, stderr } = await runCommand(t, ['--port', '0', 'app.js'], { cwd: t.testdir({ 'app.js': "require('nowhere')" }) }).exit
  t.equal(code, 1)
  t.match(stderr, /Cannot find module 'nowhere'/)
})

test('the app reads standard input', async (t) => {
  const files = { 'echo.js': "process.stdin.on('data', (text) => process.stdout.write('read ' + text))" }
  const command = runCommand(t, ['--port', '0', 'echo.js'], { cwd: t.testdir(files), input: 'a line\n' })
  const { code, stdout } = await command.exit
  t.match([code, stdout], [0, 'read a line\n'], 'and nothing of ours is in its output')
})

test('--stay keeps the viewer running after the app has ended', async (t) => {
  const { app, json, output, kill, exit } = await runApp(t, { options: ['--stay'] })
  await fetch(`${app}/users/7`)
  await eventually(() => json('/api/traces'), arrived(1))
  await fetch(`${app}/exit`)
  await output(/app\.js has ended with exit code 7/)
  t.match((await json('/api/stats')).app, { running: false, exit: 7 })
  kill('SIGINT')
  t.match(await exit, { code: 7 }, 'and then ends as the app did')
})

test('--stay does not outlive a supervisor: SIGTERM ends the app and the viewer', { skip: process.platform === 'win32' && 'Windows ends a process at once' }, async (t) => {
  const { kill, exit } = await runApp(t, { options: ['--stay'] })
  kill('SIGTERM')
  t.match(await exit, { signal: 'SIGTERM' }, 'as the app did')
})

test('--watch restarts the app, which is still traced', async (t) => {
  const { app, json, output, cwd } = await runApp(t, { options: ['--watch'] })
  await fetch(`${app}/users/7`)
  await eventually(() => json('/api/traces'), arrived(1))
  writeFileSync(join(cwd, 'app.js'), APP.replace('/users/', '/people/').replace('app at', 'again at'))
  const [, again] = await output(/again at (http:\/\/\S+)/)
  await fetch(`${again}/people/7`)
  const { traces } = await eventually(() => json('/api/traces'), arrived(2))
  t.equal(traces[0].route, 'GET /people/:id')
})

test('an app that registers light-trace itself is traced with its own options', async (t) => {
  const own = APP.replace("require('fastify')()", "require('fastify')()\napp.register(require('light-trace'), { serviceName: 'mine', attributes: () => ({ tier: 'gold' }) })")
  const { app, json } = await runApp(t, { files: { 'app.js': own } })
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces?where=tier=gold'), arrived(1))
  t.match(traces[0], { service: 'mine', spans: 2 })
})

test('the viewer\'s figures include what the app\'s tracer lost', async (t) => {
  const lossy = APP
    .replace("require('fastify')()", "require('fastify')()\napp.register(require('light-trace'), { exporter: { url: 'http://127.0.0.1:9/v1/traces' } })")
    .replace('setImmediate(() => process.exit(7))', 'setImmediate(() => app.close())')
  const { app, json } = await runApp(t, { files: { 'app.js': lossy }, options: ['--stay'] })
  await fetch(`${app}/users/7`)
  await fetch(`${app}/exit`, { headers: { connection: 'close' } })
  const { apps } = await eventually(() => json('/api/stats'), ({ apps }) => Object.keys(apps[0]?.dropped ?? {}).length > 0)
  t.match(apps, [{ pid: Number, dropped: { shutdown_deadline: 4 }, lastError: /ECONNREFUSED/ }])
})
