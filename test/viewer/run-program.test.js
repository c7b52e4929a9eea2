'use strict'

// npx light-trace app.js

const { join } = require('node:path')
const { test } = require('tap')
const { runApp, runCommand, eventually, arrived, APP } = require('./command')

const ROOT = join(__dirname, '../..')

const MODULE = APP.replace("const app = require('fastify')()", "import Fastify from 'fastify'\nconst app = Fastify()")
const TYPESCRIPT = `${MODULE}\ninterface Nothing { of: string }\nconst nothing: Nothing = { of: 'it' }\nconsole.log(nothing.of)`

const stripsTypes = Boolean(process.features.typescript)

test('an app is traced without a line in its code', async (t) => {
  const { json, app, kill, exit, text } = await runApp(t, { args: ['one', '--two'] })
  t.match(await (await fetch(`${app}/given`)).json(), { args: ['one', '--two'], delay: '100' }, 'what follows its name is its own')
  await fetch(`${app}/boom`)
  const { traces: [trace] } = await eventually(() => json('/api/traces?status=error'), arrived(1))
  t.match(trace, { name: 'GET /boom', status: 500, error: { type: 'TypeError', message: 'x is undefined' } })
  const { rows } = await json(`/api/traces/${trace.id}/rows`)
  t.same(rows.map(({ kind, name }) => `${kind} ${name}`), ['SERVER GET /boom', 'INTERNAL handler'])
  t.match((await json('/api/stats')).app, { command: 'app.js one --two', running: true })
  t.equal(text().split('\n').filter((line) => line.startsWith('light-trace:')).length, 1, 'one line of ours')
  kill('SIGTERM')
  t.match(await exit, { code: null, signal: 'SIGTERM' }, 'ended as the app did')
})

test('an app that registers light-trace itself has spans of its handlers, too, even of routes with their own options', async (t) => {
  const own = `app.register(require(${JSON.stringify(ROOT)}), { serviceName: 'own' })
    app.get('/own', { config: { trace: { spans: { hooks: ['preHandler'] } } } }, async () => 'ok')\n`
  const { json, app } = await runApp(t, { files: { 'app.js': APP.replace(/^(const app = .*\n)/m, `$1${own}`) } })
  await fetch(`${app}/own`)
  const { traces: [trace] } = await eventually(() => json('/api/traces'), arrived(1))
  const { rows } = await json(`/api/traces/${trace.id}/rows`)
  t.same(rows.map(({ kind, name }) => `${kind} ${name}`), ['SERVER GET /own', 'INTERNAL handler'])
  t.match(JSON.stringify(trace), /"own"/)
})

test('the span of a request says where its route is declared, and the page opens it in an editor', async (t) => {
  const own = `app.register(require(${JSON.stringify(ROOT)}), { serviceName: 'own' })\n`
  const registered = APP.replace(/^(const app = .*\n)/m, `$1${own}`)
  for (const [files, options, line, link] of [
    [{ 'app.js': APP }, [], 3, (file) => `vscode://file${file}:3`],
    [{ 'app.js': registered }, ['--editor', 'zed'], 4, (file) => `zed://file${file}:4`],
    [{ 'app.js': APP }, ['--editor', 'none'], 3, () => undefined]
  ]) {
    const { json, app, cwd, kill, exit } = await runApp(t, { files, options })
    await fetch(`${app}/users/7`)
    const { traces: [trace] } = await eventually(() => json('/api/traces'), arrived(1))
    const { rows: [row] } = await json(`/api/traces/${trace.id}/rows`)
    const { attributes } = await json(`/api/traces/${trace.id}/spans/${row.id}`)
    const of = (name) => attributes.find(({ key }) => key === name)
    t.equal(of('code.file.path').value, join(cwd, 'app.js'))
    t.equal(of('code.line.number').value, line)
    t.equal(of('code.file.path').open, link(join(cwd, 'app.js')))
    kill('SIGTERM')
    await exit
  }
})

test('an ES module is traced', async (t) => {
  const { json, app } = await runApp(t, { files: { 'app.mjs': MODULE }, program: 'app.mjs' })
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces'), arrived(1))
  t.equal(traces[0].route, 'GET /users/:id')
})

test('TypeScript is traced on a Node that strips types', { skip: stripsTypes ? false : 'not on this Node' }, async (t) => {
  const { json, app } = await runApp(t, { files: { 'app.mts': TYPESCRIPT }, program: 'app.mts' })
  await fetch(`${app}/users/7`)
  const { traces } = await eventually(() => json('/api/traces'), arrived(1))
  t.equal(traces[0].route, 'GET /users/:id')
})

// What a loader like tsx does, on any version of Node.
const LOADER = {
  'loader.mjs': "import { register } from 'node:module'\nregister('./hooks.mjs', import.meta.url)",
  'hooks.mjs': `import { readFile } from 'node:fs/promises'
    export async function load (url, context, next) {
      if (!url.endsWith('.ts')) return next(url, context)
      return { format: 'module', shortCircuit: true, source: (await readFile(new URL(url), 'utf8')).replace(/interface.*/, '').replace(': Nothing', '') }
    }`
}

test('TypeScript is traced with a loader on any Node', async (t) => {
  for (const options of [['--import=./loader.mjs'], ['--import', './loader.mjs']]) {
    const { json, app } = await runApp(t, { files: { ...LOADER, 'app.ts': TYPESCRIPT }, program: 'app.ts', options })
    await fetch(`${app}/users/7`)
    const { traces } = await eventually(() => json('/api/traces'), arrived(1))
    t.equal(traces[0].route, 'GET /users/:id', options.join(' '))
  }
})

test('a script is run by the program in its first line, and the processes that it starts are traced', async (t) => {
  const scripts = { 'start.sh': 'exec node app.js', start: '#!/usr/bin/env -S sh -e\nexec node app.js', 'app-cli': `#!/usr/bin/env node\n${APP}` }
  for (const program of ['./start.sh', 'start', './app-cli']) {
    const { json, app } = await runApp(t, { files: { 'app.js': APP, ...scripts }, program })
    await fetch(`${app}/users/7`)
    const { traces } = await eventually(() => json('/api/traces'), arrived(1))
    t.equal(traces[0].route, 'GET /users/:id', program)
  }
})

const PLAIN = "require('http').createServer((request, response) => response.end()).listen(0, function () { console.log('app at http://localhost:' + this.address().port) })\n"
const OLD = "require('diagnostics_channel').channel('fastify.initialization').publish({ fastify: { version: '4.28.1' } })\n"

test('the command explains why an app is not traced, or that its spans go elsewhere', async (t) => {
  const own = (options) => APP.replace("require('fastify')()", `require('fastify')()\napp.register(require('light-trace'), ${options})`)
  const apps = [
    [PLAIN, /process \d+ serves HTTP without Fastify/],
    [OLD + PLAIN, /process \d+ uses Fastify 4\.28\.1, and light-trace needs Fastify 5 or later/],
    [own('{ spanProcessors: [{ onStart () {}, onEnd () {}, async forceFlush () {}, async shutdown () {} }] }'), /process \d+ sends its spans elsewhere/],
    [own('{ sampler: 0 }'), /process \d+ did not sample \d+ spans/]
  ]
  for (const [source, word] of apps) {
    const { app, json, output } = await runApp(t, { files: { 'app.js': source } })
    await fetch(`${app}/users/7`)
    await output(new RegExp(`light-trace: ${word.source}`))
    t.match((await json('/api/stats')).advice, [word], 'as on the page')
  }
})

test('the command explains that this Node cannot run TypeScript', { skip: process.allowedNodeEnvironmentFlags.has('--experimental-strip-types') }, async (t) => {
  const cwd = t.testdir({ 'app.ts': TYPESCRIPT })
  const { code, stderr } = await runCommand(t, ['--port', '0', 'app.ts'], { cwd }).exit
  t.equal(code, 2)
  t.match(stderr, /Node 20\.[\d.]+ does not run TypeScript/)
})
