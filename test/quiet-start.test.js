'use strict'

// If all options are valid, light-trace logs nothing that the user has not asked for.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('..')
const { runInChild } = require('./support/child')

async function linesOf (t, level, options) {
  const lines = []
  const app = Fastify({ logger: { level, stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { registerGlobals: false, ...options })
  await app.ready()
  return lines
}

for (const [what, options] of [
  ['without an exporter', { exporter: 'none' }],
  ['with an exporter', { exporter: { url: 'http://127.0.0.1:1' } }],
  ['with span processors', { spanProcessors: [{ onStart () {}, onEnd () {} }] }]
]) {
  test(`an app ${what} adds no line to a log at level info`, async (t) => {
    t.same(await linesOf(t, 'info', options), [])
  })
}

test('at level debug, one line names the destination of the spans', async (t) => {
  const lines = await linesOf(t, 'debug', { exporter: 'none' })
  t.match(lines, [{ level: 20, msg: /^light-trace in mode none: / }])
  t.equal(lines.length, 1)
})

test('an app that switches itself off in code adds no line to a log at level info', async (t) => {
  t.same(await linesOf(t, 'info', { enabled: false }), [])
  t.match(await linesOf(t, 'debug', { enabled: false }), [{ level: 20, msg: 'light-trace in mode disabled: enabled: false' }])
})

test('a switch that is not in the options is logged at level info: disabled by a variable', async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify({ logger: { level: 'info', stream: { write: (line) => say(JSON.parse(line).msg) } } })
    await app.register(lightTrace, { exporter: 'none' })
    await app.ready()
    await app.close()
  }, { env: { OTEL_SDK_DISABLED: 'true' } })
  t.match((await child.exit).said, [/^light-trace in mode disabled: OTEL_SDK_DISABLED/])
})

test('light-trace/register loads almost nothing in a process and a worker until Fastify is loaded', async (t) => {
  const child = runInChild(t, async ({ Fastify, say, root }) => {
    const { Worker } = require('node:worker_threads')
    const ours = (root) => Object.keys(require.cache).filter((file) => file.startsWith(root + '/lib/') || file === root + '/index.js').length
    say(ours(root))
    const worker = new Worker(`require('node:worker_threads').parentPort.postMessage((${ours})(${JSON.stringify(root)}))`, { eval: true })
    worker.once('message', async (count) => {
      say(count)
      const app = Fastify()
      app.get('/', async (request) => ({ sampled: request.trace.sampled }))
      say((await app.inject('/')).json())
      say(ours(root) > 20)
      await app.close()
    })
  }, { env: { NODE_OPTIONS: `--require ${require.resolve('../register.js')}`, OTEL_TRACES_EXPORTER: 'none' } })
  t.same((await child.exit).said, [1, 1, { sampled: true }, true])
})
