'use strict'

// The commands that use a running viewer: tail, trace, import, export and save, and its port.

const http = require('node:http')
const net = require('node:net')
const { readFileSync, statSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { runCommand, runApp, eventually, arrived } = require('./command')
const { startViewer, traceId } = require('./support')
const { saveTo } = require('../../viewer/commands/save')

const request = { id: 1, name: 'GET /users/:id', kind: 2, ms: 12.5, attributes: { 'http.request.method': 'GET', 'http.route': '/users/:id', 'http.response.status_code': 200 } }
const call = { id: 2, parent: 1, name: 'GET', kind: 3, at: 2, ms: 5 }
const tree = `GET /users/:id  200  12.5 ms  shop  ${traceId(1)}\n\nSERVER GET /users/:id    12.5 ms  200\n  CLIENT GET              5.0 ms\n`

test('tail prints traces as trees, and prints a trace again when it has grown', async (t) => {
  const viewer = await startViewer(t)
  const command = runCommand(t, ['tail', '--port', String(viewer.port)])
  while (viewer.viewer.events.size === 0) await new Promise(setImmediate)
  await viewer.send([request])
  await command.output(/SERVER GET \/users\/:id {2}/)
  await viewer.send([call])
  await command.output(/printed again: it had 1 span before/)
  await viewer.viewer.close()
  const { code, stdout } = await command.exit
  t.equal(code, 0)
  t.ok(stdout.includes(tree), stdout)
})

test('tail --url does not start a viewer', async (t) => {
  const { viewer, port } = await startViewer(t)
  await viewer.close()
  t.match(await runCommand(t, ['tail', '--url', `http://127.0.0.1:${port}/`]).exit, { code: 1, stdout: '', stderr: /^light-trace: no viewer listens at / })
})

test('tail ends without an error when its output is no longer read', async (t) => {
  const viewer = await startViewer(t)
  const command = runCommand(t, ['tail', '--port', String(viewer.port)])
  while (viewer.viewer.events.size === 0) await new Promise(setImmediate)
  await viewer.send([request])
  await command.output(/SERVER GET/)
  command.stdout.destroy()
  for (let trace = 2; viewer.viewer.events.size > 0; trace++) {
    await viewer.send([{ ...request, trace }])
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.match(await command.exit, { code: 0, stderr: '' })
})

test('tail ends without an error when the viewer is killed', async (t) => {
  const serve = runCommand(t, ['--port', '0'])
  const [, url] = await serve.output(/(http:\/\/localhost:\d+)/)
  const command = runCommand(t, ['tail', '--url', url])
  await eventually(async () => (await fetch(`${url}/api/stats`)).json(), ({ clients }) => clients === 1)
  serve.kill('SIGKILL')
  t.match(await command.exit, { code: 0, stdout: '', stderr: '' })
})

test('tail with an app starts a viewer if none is running', async (t) => {
  const command = runCommand(t, ['tail', '--port', '0', 'app.js'], { cwd: t.testdir({ 'app.js': "const app = require('fastify')()\napp.get('/', async () => 'x')\napp.listen({ port: 0, host: '127.0.0.1' }).then((address) => console.log('app at ' + address))" }) })
  const [, app] = await command.output(/app at (http:\/\/\S+)/)
  await fetch(app)
  await command.output(/SERVER GET \/ +[\d.]+ ms {2}200\n {2}INTERNAL handler/)
  t.pass()
})

test('the trace command prints a trace as a tree or as OTLP JSON', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request, call])
  const run = (...args) => runCommand(t, ['trace', ...args, '--port', String(viewer.port)]).exit
  t.match(await run('last'), { code: 0, stdout: tree })
  t.match((await run(traceId(1), '--attributes')).stdout, /\n {2}http\.route: \/users\/:id\n/)
  const { resourceSpans } = JSON.parse((await run('slowest', '--json')).stdout)
  t.match(resourceSpans[0].scopeSpans[0].spans, [{ traceId: traceId(1), kind: 2, startTimeUnixNano: '1763753000000000000' }, { kind: 3 }])
  t.match(await run('failed'), { code: 1, stdout: '', stderr: 'light-trace: no trace has failed\n' })
  await viewer.viewer.close()
  t.match(await run('last'), { code: 1, stderr: /no viewer listens at http:\/\/127\.0\.0\.1:\d+\. Start one: npx light-trace app\.js/ })
})

test('an import restores exactly what was exported', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request, call])
  await viewer.send([{ ...request, trace: 2 }], { service: 'stock' })
  const file = join(t.testdir({ 'traces.jsonl': 'old' }), 'traces.jsonl')
  t.match(await runCommand(t, ['export', file, '--port', String(viewer.port)]).exit, { code: 0 })
  if (process.platform !== 'win32') t.equal(statSync(file).mode & 0o077, 0, 'only its owner may read it')
  const { stdout } = await runCommand(t, ['export', '--port', String(viewer.port)]).exit
  t.equal(stdout, readFileSync(file, 'utf8'))
  const other = await startViewer(t)
  t.match(await runCommand(t, ['import', file, '--port', String(other.port)]).exit, { code: 0, stderr: 'light-trace: 3 spans of 2 traces from ' + file + '\n' })
  for (const id of [1, 2].map(traceId)) t.same(await other.json(`/api/traces/${id}`), await viewer.json(`/api/traces/${id}`))
  t.match((await other.json('/api/stats')).received, { imported: 3, spans: 0 })
  writeFileSync(file, '{"resourceSpans": 5}\n')
  t.match(await runCommand(t, ['import', file, '--port', String(other.port)]).exit, { code: 1, stderr: /traces\.jsonl: resourceSpans is not a list/ })
  t.match(await runCommand(t, ['import', '/nowhere.json', '--port', String(other.port)]).exit, { code: 1, stderr: /ENOENT/ })
})

test('import starts a viewer if none is running', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request, call])
  const json = await (await viewer.get(`/api/traces/${traceId(1)}`)).text()
  const command = runCommand(t, ['import', '-', '--port', '0'], { input: json })
  const [, url] = await command.output(/(http:\/\/localhost:\d+) shows the imported traces/)
  t.match((await (await fetch(`${url}/api/traces`)).json()).traces, [{ id: traceId(1), spans: 2 }])
})

test('nothing is written to disk, unless --save names a file', async (t) => {
  const cwd = t.testdir()
  const file = join(cwd, 'saved.jsonl')
  writeFileSync(file, '', { mode: 0o644 })
  const command = runCommand(t, ['--port', '0', '--save', file], { cwd })
  const [, url] = await command.output(/(http:\/\/localhost:\d+) shows what is sent to it/)
  const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [{ traceId: traceId(1), spanId: '1'.repeat(16), name: 'saved' }] }] }] })
  for (let i = 0; i < 2; i++) await fetch(`${url}/v1/traces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  t.match((await (await fetch(`${url}/api/stats`)).json()).saved, { file, requests: 1, failed: 0 }, 'a duplicate is not written')
  command.kill('SIGTERM')
  await command.exit
  const lines = readFileSync(file, 'utf8').trim().split('\n').map(JSON.parse)
  t.match(lines, [{ resourceSpans: [{ scopeSpans: [{ spans: [{ name: 'saved' }] }] }] }])
  if (process.platform !== 'win32') t.equal(statSync(file).mode & 0o077, 0, 'only its owner may read it, also where it was there before')
})

test('a request of many spans is saved whole, although no part of it is written before all of it is read', async (t) => {
  const { viewer, send } = await startViewer(t)
  const file = join(t.testdir(), 'saved.jsonl')
  saveTo(viewer, file, t.fail)
  await send(Array.from({ length: 30_000 }, (_, i) => ({ trace: i + 1, attributes: { text: 'x'.repeat(1000) } })))
  await viewer.close()
  t.match(viewer.saved, { requests: 3, failed: 0 })
  const names = readFileSync(file, 'utf8').trim().split('\n').map((line) => line.split('"name":"work"').length - 1)
  t.same(names, [10_000, 10_000, 10_000])
})

test('the viewer names the process that uses the port, and takes the next port', async (t) => {
  const holders = {
    'another light-trace \\(process \\d+\\)': (port) => startOn(t, port),
    'an OTLP receiver, such as a collector': (port) => listen(t, http.createServer((request, response) => response.end()), port),
    'another program that is not an (?:OTLP) receiver': (port) => listen(t, http.createServer((request, response) => {
      const more = () => { while (response.write('{'.repeat(10_000)) && !response.destroyed); }
      response.on('drain', more)
      more()
    }), port),
    'another program that is not an OTLP receiver': (port) => listen(t, net.createServer((socket) => socket.end('no')), port)
  }
  for (const [name, hold] of Object.entries(holders)) {
    const port = await hold(0)
    const command = runCommand(t, ['--port', String(port)])
    const [, taken] = await command.output(new RegExp(`port ${port} is used by ${name}\\. This viewer uses port (\\d+) and does not receive what is sent to ${port}`))
    t.ok(Number(taken) > port, name)
    t.match(await (await fetch(`http://127.0.0.1:${taken}/api/whoami`)).json(), { name: 'light-trace' })
  }
})

async function startOn (t) {
  return (await startViewer(t)).port
}

function listen (t, server, port) {
  t.teardown(() => server.close())
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server.address().port)))
}

test('the app is pointed at the port that was taken', async (t) => {
  const taken = await listen(t, net.createServer((socket) => socket.destroy()), 0)
  const command = await runApp(t, { options: ['--port', String(taken)] })
  await fetch(`${command.app}/users/7`)
  const { traces } = await eventually(() => command.json('/api/traces'), arrived(1))
  t.equal(traces[0].name, 'GET /users/:id')
})

test('--host prints an address with a token, and the app reaches it', async (t) => {
  const { viewer, app, text } = await runApp(t, { options: ['--host', '127.0.0.1'], address: /(http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]+)/ })
  const url = new URL(viewer)
  t.ok(url.searchParams.get('token').length >= 32)
  await fetch(`${app}/users/7`)
  const ask = async (path) => fetch(url.origin + path, { headers: { authorization: `Bearer ${url.searchParams.get('token')}` } })
  await eventually(async () => (await ask('/api/traces')).json(), arrived(1))
  await eventually(async () => (await ask('/api/stats')).json(), ({ apps }) => apps.length === 1)
  t.equal((await fetch(`${url.origin}/api/traces`)).status, 401)
  const { code, stdout } = await runCommand(t, ['trace', 'last', '--url', viewer]).exit
  t.match([code, stdout], [0, /GET \/users\/:id/], text())
})
