'use strict'

// npx light-trace app.js

const { writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { runApp, runCommand, eventually, APP } = require('./command')
const { startViewer } = require('./support')

const MODULE = APP.replace("const app = require('fastify')()", "import Fastify from 'fastify'\nconst app = Fastify()")
const TYPESCRIPT = `${MODULE}\ninterface Nothing { of: string }\nconst nothing: Nothing = { of: 'it' }\nconsole.log(nothing.of)`

const stripsTypes = Boolean(process.features.typescript)

const failed = (json) => async () => (await json('/api/traces?status=error')).traces

test('an app is traced without a line in its code', async (t) => {
  const { json, app, kill, exit, text } = await runApp(t, { args: ['one', '--two'] })
  t.match(await (await fetch(`${app}/given`)).json(), { args: ['one', '--two'], delay: '100' }, 'what follows its name is its own')
  await fetch(`${app}/boom`)
  const [trace] = await eventually(failed(json), ({ length }) => length === 1)
  t.match(trace, { name: 'GET /boom', status: 500, error: { type: 'TypeError', message: 'x is undefined' } })
  const { rows } = await json(`/api/traces/${trace.id}/rows`)
  t.same(rows.map(({ kind, name }) => `${kind} ${name}`), ['SERVER GET /boom', 'INTERNAL handler'])
  t.match((await json('/api/stats')).app, { command: 'app.js one --two', running: true })
  t.equal(text().split('\n').filter((line) => line.startsWith('light-trace:')).length, 1, 'one line of ours')
  kill('SIGTERM')
  t.match(await exit, { code: null, signal: 'SIGTERM' }, 'ended as the app did')
})

test('an ES module is traced', async (t) => {
  const { json, app } = await runApp(t, { files: { 'app.mjs': MODULE }, program: 'app.mjs' })
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 1)
  t.equal(traces[0].route, 'GET /users/:id')
})

test('TypeScript is traced where Node strips types itself', { skip: stripsTypes ? false : 'not on this Node' }, async (t) => {
  const { json, app } = await runApp(t, { files: { 'app.mts': TYPESCRIPT }, program: 'app.mts' })
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 1)
  t.equal(traces[0].route, 'GET /users/:id')
})

// What a loader such as tsx does, on any Node.
const LOADER = {
  'loader.mjs': "import { register } from 'node:module'\nregister('./hooks.mjs', import.meta.url)",
  'hooks.mjs': `import { readFile } from 'node:fs/promises'
    export async function load (url, context, next) {
      if (!url.endsWith('.ts')) return next(url, context)
      return { format: 'module', shortCircuit: true, source: (await readFile(new URL(url), 'utf8')).replace(/interface.*/, '').replace(': Nothing', '') }
    }`
}

test('TypeScript is traced by a loader of one\'s own, on any Node', async (t) => {
  for (const options of [['--import=./loader.mjs'], ['--import', './loader.mjs']]) {
    const { json, app } = await runApp(t, { files: { ...LOADER, 'app.ts': TYPESCRIPT }, program: 'app.ts', options })
    await fetch(`${app}/users/7`)
    const { traces } = await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 1)
    t.equal(traces[0].route, 'GET /users/:id', options.join(' '))
  }
})

test('a script is run by what its first line names, and what it starts is traced', async (t) => {
  const scripts = { 'start.sh': 'exec node app.js', start: '#!/usr/bin/env -S sh -e\nexec node app.js', 'app-cli': `#!/usr/bin/env node\n${APP}` }
  for (const program of ['./start.sh', 'start', './app-cli']) {
    const { json, app } = await runApp(t, { files: { 'app.js': APP, ...scripts }, program })
    await fetch(`${app}/users/7`)
    const { traces } = await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 1)
    t.equal(traces[0].route, 'GET /users/:id', program)
  }
})

const PLAIN = "require('http').createServer((request, response) => response.end()).listen(0, function () { console.log('app at http://localhost:' + this.address().port) })\n"
const OLD = "require('diagnostics_channel').channel('fastify.initialization').publish({ fastify: { version: '4.28.1' } })\n"

test('an app that is not traced, or whose spans go elsewhere, has a word said', async (t) => {
  const own = (options) => APP.replace("require('fastify')()", `require('fastify')()\napp.register(require('light-trace'), ${options})`)
  const apps = [
    [PLAIN, /process \d+ answers requests without Fastify/],
    [OLD + PLAIN, /process \d+ uses Fastify 4\.28\.1, and light-trace traces Fastify 5/],
    [own('{ spanProcessors: [{ onStart () {}, onEnd () {}, async forceFlush () {}, async shutdown () {} }] }'), /process \d+ sends its spans elsewhere/],
    [own('{ sampler: 0 }'), /process \d+ left out \d+ spans/]
  ]
  for (const [source, word] of apps) {
    const { app, json, output } = await runApp(t, { files: { 'app.js': source } })
    await fetch(`${app}/users/7`)
    await output(new RegExp(`light-trace: ${word.source}`))
    t.match((await json('/api/stats')).advice, [word], 'as on the page')
  }
})

test('a signal to all processes of a group comes to the app once', async (t) => {
  const counting = `${APP}
let count = 0
process.on('SIGINT', () => { if (count++ === 0) setTimeout(() => { console.log('SIGINT came', count); process.exit(0) }, 400) })`
  const { kill, exit } = await runApp(t, { files: { 'app.js': counting }, isGroup: true })
  kill('SIGINT')
  t.match(await exit, { code: 0, stdout: /SIGINT came 1\n/ })
})

test('an app in a second terminal joins the viewer that runs', async (t) => {
  const viewer = await startViewer(t)
  const { app, text, json } = await runApp(t, { options: ['--port', String(viewer.port)] })
  t.match(text(), new RegExp(`light-trace: http://localhost:${viewer.port}, the viewer of process ${process.pid}, shows the requests of app\\.js\n`))
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 1)
  t.equal(traces[0].route, 'GET /users/:id')
})

test('a Node without TypeScript says so', { skip: process.allowedNodeEnvironmentFlags.has('--experimental-strip-types') }, async (t) => {
  const cwd = t.testdir({ 'app.ts': TYPESCRIPT })
  const { code, stderr } = await runCommand(t, ['--port', '0', 'app.ts'], { cwd }).exit
  t.equal(code, 2)
  t.match(stderr, /Node 20\.[\d.]+ does not run TypeScript/)
})

test('a command is traced with every Node process in it', async (t) => {
  const { json, app } = await runApp(t, { program: 'sh', args: ['-c', 'exec node app.js'] })
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 1)
  t.equal(traces[0].route, 'GET /users/:id')
})

test('`node app.js` is app.js, and options of Node are handed on', async (t) => {
  const { app } = await runApp(t, { program: 'node', args: ['--max-old-space-size=300', 'app.js', 'one'] })
  t.match(await (await fetch(`${app}/given`)).json(), { args: ['one'], execArgv: 3 })
})

test('the exit code is the app\'s', async (t) => {
  const { app, exit } = await runApp(t)
  await fetch(`${app}/exit`)
  t.match(await exit, { code: 7, signal: null })
})

test('an app that cannot be started ends the command with its own words', async (t) => {
  const { code, stderr } = await runCommand(t, ['--port', '0', 'app.js'], { cwd: t.testdir({ 'app.js': "require('nowhere')" }) }).exit
  t.equal(code, 1)
  t.match(stderr, /Cannot find module 'nowhere'/)
})

test('standard input is the app\'s', async (t) => {
  const files = { 'echo.js': "process.stdin.on('data', (text) => process.stdout.write('read ' + text))" }
  const command = runCommand(t, ['--port', '0', 'echo.js'], { cwd: t.testdir(files), input: 'a line\n' })
  const { code, stdout } = await command.exit
  t.match([code, stdout], [0, 'read a line\n'], 'and nothing of ours is in its output')
})

test('--stay goes on showing when the app has ended', async (t) => {
  const { app, json, output, kill, exit } = await runApp(t, { options: ['--stay'] })
  await fetch(`${app}/users/7`)
  await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 1)
  await fetch(`${app}/exit`)
  await output(/app\.js has ended with 7/)
  t.match((await json('/api/stats')).app, { running: false, exit: 7 })
  kill('SIGINT')
  t.match(await exit, { code: 7 }, 'and then ends as the app did')
})

test('--watch restarts the app, and it goes on being traced', async (t) => {
  const { app, json, output, cwd } = await runApp(t, { options: ['--watch'] })
  await fetch(`${app}/users/7`)
  await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 1)
  writeFileSync(join(cwd, 'app.js'), APP.replace('/users/', '/people/').replace('app at', 'again at'))
  const [, again] = await output(/again at (http:\/\/\S+)/)
  await fetch(`${again}/people/7`)
  const { traces } = await eventually(() => json('/api/traces'), ({ traces }) => traces.length === 2)
  t.equal(traces[0].route, 'GET /people/:id')
})

test('an app that registers light-trace itself is traced as it says', async (t) => {
  const own = APP.replace("require('fastify')()", "require('fastify')()\napp.register(require('light-trace'), { serviceName: 'mine', attributes: () => ({ tier: 'gold' }) })")
  const { app, json } = await runApp(t, { files: { 'app.js': own } })
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces?attr=tier:gold'), ({ traces }) => traces.length === 1)
  t.match(traces[0], { service: 'mine', spans: 2 })
})

test('what the app\'s tracer lost is in the viewer\'s figures', async (t) => {
  const lossy = APP
    .replace("require('fastify')()", "require('fastify')()\napp.register(require('light-trace'), { exporter: { url: 'http://127.0.0.1:9/v1/traces' } })")
    .replace('setImmediate(() => process.exit(7))', 'setImmediate(() => app.close())')
  const { app, json } = await runApp(t, { files: { 'app.js': lossy }, options: ['--stay'] })
  await fetch(`${app}/users/7`)
  await fetch(`${app}/exit`, { headers: { connection: 'close' } })
  const { apps } = await eventually(() => json('/api/stats'), ({ apps }) => Object.keys(apps[0]?.dropped ?? {}).length > 0)
  t.match(apps, [{ pid: Number, dropped: { shutdown_deadline: 4 }, lastError: /ECONNREFUSED/ }])
})
