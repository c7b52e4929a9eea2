// The ways in which a process ends: on SIGTERM, as process 1 of a container, in Kubernetes, and as a worker of node:cluster and of PM2. The
// spans of all answered requests are delivered. The code is from docs/recipes.md.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml' // from the repository that contains this folder
import { docsCode, runProgram, startProgram, startSink } from '../../test/support/ecosystem.js'

const here = import.meta.dirname
const recipe = (language) => docsCode('recipes.md', 'The end of a process: SIGTERM, Docker, Kubernetes, PM2, cluster', language)
const [signals, pm2Config, clusterSignals] = recipe('js')
const [dockerfile] = recipe('dockerfile')
const [manifest] = recipe('yaml')
const COMMAND = JSON.parse(/^CMD (.*)$/m.exec(dockerfile)[1])
const POD = { 'metadata.name': 'shop-7d9c', 'metadata.uid': '2a6f4e3c-0b8e-4a43-9df5-3f6f8a1b2c3d' }
const NAMESPACE = ['unshare', ...(process.getuid() === 0 ? [] : ['--user', '--map-root-user']), '--pid', '--fork', '--kill-child']

const APP = `
const app = require('fastify')({ logger: true })
app.register(require('light-trace'), { buffer: { flushDelayMs: 60_000 } }) // so that all is left for the end
app.get('/', async () => ({ pid: process.pid, version: process.env.VERSION }))
app.get('/late', async (request) => {
  request.log.info('late has begun')
  while (app.server.listening) await new Promise((resolve) => setImmediate(resolve)) // until the app is closing
  return 'answered'
})
${signals}
app.listen({ port: Number(process.env.PORT ?? 0), host: '127.0.0.1' })
`

test('SIGTERM: running requests are answered, and all spans are delivered', async (t) => {
  const sink = await startSink(t)
  const program = startProgram(t, COMMAND, { cwd: makeApp(t), sink })
  const origin = await listening(program)
  assert.equal((await fetch(origin)).status, 200)
  const late = fetch(`${origin}/late`)
  await program.says(/late has begun/)
  program.kill('SIGTERM')
  assert.equal(await (await late).text(), 'answered')
  assert.equal(await program.ended, 0)
  assert.deepEqual(sink.spans.map(({ name }) => name).sort(), ['GET /', 'GET /late'])
})

const noNamespace = spawnSync(NAMESPACE[0], [...NAMESPACE.slice(1), 'true']).status !== 0 && 'this machine cannot create a PID namespace'

test('Docker: Node as process 1', { skip: noNamespace }, async (t) => {
  const sink = await startSink(t)
  const program = startProgram(t, [...NAMESPACE, ...COMMAND], { cwd: makeApp(t), sink })
  const answer = await (await fetch(await listening(program))).json()
  assert.equal(answer.pid, 1)
  process.kill(Number(readFileSync(`/proc/${program.pid}/task/${program.pid}/children`, 'utf8')), 'SIGTERM')
  assert.equal(await program.ended, 0)
  assert.deepEqual(sink.spans.map(({ name, resource }) => `${name} ${resource['process.pid']}`), ['GET / 1'])
})

test('Kubernetes: the pod is in the resource', async (t) => {
  const sink = await startSink(t)
  const env = { KUBERNETES_SERVICE_HOST: '127.0.0.1' }
  for (const { name, value, valueFrom } of parse(manifest).env) env[name] = value ?? POD[valueFrom.fieldRef.fieldPath]
  assert.equal(new URL(env.OTEL_EXPORTER_OTLP_ENDPOINT).port, '4318')
  const program = startProgram(t, COMMAND, { cwd: makeApp(t), sink, env: { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: new URL(sink.url).origin } })
  await fetch(await listening(program))
  program.kill('SIGTERM')
  assert.equal(await program.ended, 0)
  const [{ resource }] = sink.spans
  assert.deepEqual([resource['k8s.pod.name'], resource['k8s.pod.uid']], [POD['metadata.name'], POD['metadata.uid']])
})

test('node:cluster: each worker is an instance and delivers all spans', async (t) => {
  const sink = await startSink(t)
  const folder = makeApp(t, { 'cluster.js': `const cluster = require('node:cluster')\nif (cluster.isPrimary) { cluster.fork(); cluster.fork()\n${clusterSignals}} else require('./app.js')\n` })
  const program = startProgram(t, [process.execPath, 'cluster.js'], { cwd: folder, sink })
  await program.says(/listening at[\s\S]*listening at/)
  const pids = await askWorkers(await listening(program), 2)
  program.kill('SIGTERM')
  assert.equal(await program.ended, 0)
  assertDelivered(sink, pids)
})

test('PM2: start, reload and stop in cluster mode lose no request and no span', { timeout: 240_000 }, async (t) => {
  const sink = await startSink(t)
  const folder = makeApp(t, { 'ecosystem.config.js': pm2Config })
  const port = await freePort()
  const options = { cwd: folder, sink, env: { PM2_HOME: join(folder, '.pm2'), PORT: String(port), PM2_DISABLE_VERSION_CHECK: 'true' } }
  const pm2 = async (...args) => {
    const { code, text } = await runProgram(t, [process.execPath, join(here, 'node_modules/pm2/bin/pm2'), ...args], options)
    assert.equal(code, 0, text)
  }
  try {
    await pm2('start', 'ecosystem.config.js')
    const first = await askWorkers(`http://127.0.0.1:${port}/`, 2)
    await pm2('reload', 'ecosystem.config.js')
    const second = await askWorkers(`http://127.0.0.1:${port}/`, 2)
    assert.deepEqual([...first.keys()].filter((pid) => second.has(pid)), [], 'the processes are new')
    await pm2('stop', 'shop')
    assertDelivered(sink, new Map([...first, ...second]))
  } finally {
    await pm2('kill') // ends its daemon
  }
})

/** Sends requests until this many workers have answered. */
async function askWorkers (origin, workers) {
  const answers = new Map() // pid → number of answers
  for (const deadline = Date.now() + 60_000; answers.size < workers;) {
    assert.ok(Date.now() < deadline, `${answers.size} workers have answered`)
    const response = await fetch(origin, { headers: { connection: 'close' } }).catch(() => null)
    if (response === null) continue // not listening yet
    const { pid } = await response.json()
    answers.set(pid, (answers.get(pid) ?? 0) + 1)
  }
  return answers
}

/** Checks that each process has delivered a span for each of its answers, with its own instance id. */
function assertDelivered (sink, answers) {
  const delivered = new Map()
  const instances = new Set()
  for (const { resource } of sink.spans) {
    const pid = resource['process.pid']
    delivered.set(pid, (delivered.get(pid) ?? 0) + 1)
    instances.add(resource['service.instance.id'])
  }
  const sorted = (map) => [...map].sort(([a], [b]) => a - b)
  assert.deepEqual(sorted(delivered), sorted(answers))
  assert.equal(instances.size, answers.size)
}

async function listening (program) {
  return (await program.says(/Server listening at (http:\/\/127\.0\.0\.1:\d+)/))[1]
}

function makeApp (t, files = {}) {
  const folder = mkdtempSync(join(here, 'app-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries({ 'package.json': '{ "name": "shop" }', 'app.js': APP, ...files })) writeFileSync(join(folder, name), text)
  return folder
}

function freePort () {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
