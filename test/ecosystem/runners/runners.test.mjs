// The test runners and mocks that apps use. light-trace works with each, and does not keep any runner from exiting.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fastify from 'fastify'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'
import nock from 'nock'
import sinon from 'sinon'
import { startSink } from '../../test/support/ecosystem.js'

const run = promisify(execFile)
const here = import.meta.dirname
const TIMEOUT_MS = 120_000

test('Jest finds no open handles', { timeout: TIMEOUT_MS }, async () => {
  const { stderr } = await run(process.execPath, ['node_modules/jest/bin/jest.js', '--detectOpenHandles', '--ci'], { cwd: here })
  assert.match(stderr, /Tests: +3 passed, 3 total/)
  assert.doesNotMatch(stderr, /open handle/)
})

test('Jest: an application that one file leaves open is garbage-collected before the next file', { timeout: TIMEOUT_MS }, async () => {
  const { stderr } = await run(process.execPath, ['node_modules/jest/bin/jest.js', '--ci', '--runInBand', '--testSequencer', './open/by-name.cjs', '--testMatch', '<rootDir>/open/*.spec.cjs'], { cwd: here })
  assert.match(stderr, /Tests: +2 passed, 2 total/)
})

test('Vitest', { timeout: TIMEOUT_MS }, async () => {
  const { stdout } = await run(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--dir', 'vitest', '--no-color'], { cwd: here, env: { ...process.env, NO_COLOR: '1' } })
  assert.match(stdout, /Tests +3 passed \(3\)/)
})

test('node:test: a broken budget fails with the tree, and a larger budget passes', async (t) => {
  const collector = createCollector()
  const app = fastify()
  t.after(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector] })
  app.get('/', async () => Promise.all([1, 2].map(() => fetch('http://127.0.0.1:4').catch(() => ''))))
  await app.inject('/')
  await collector.check({ repeats: 2, calls: { http: 2 }, afterResponse: false, open: false })
  await assert.rejects(collector.check({ calls: { http: 1 } }), { code: 'LT_ERR_CHECK', message: /over budget\nGET \/: http: 2 calls, 1 allowed[^]+<-- http/ })
})

test('fake timers of node:test and of sinon block nothing', async (t) => {
  const fakes = [
    () => { t.mock.timers.enable(); return () => t.mock.timers.reset() },
    () => { const clock = sinon.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] }); return () => clock.restore() }
  ]
  for (const enable of fakes) {
    const disable = enable()
    const collector = createCollector()
    const app = fastify()
    await app.register(lightTrace, { spanProcessors: [collector] })
    app.get('/', async () => 'ok')
    assert.equal((await app.inject('/')).body, 'ok')
    await app.close()
    disable()
    assert.equal(await collector.tree(), 'SERVER GET /')
  }
})

test('fake timers: exports arrive, by themselves and when the app is closed', async (t) => {
  const sink = await startSink(t)
  const clock = sinon.useFakeTimers({ now: 0, toFake: ['setTimeout', 'setInterval', 'setImmediate', 'Date', 'hrtime', 'performance'] })
  try {
    const app = fastify()
    await app.register(lightTrace, { exporter: { url: sink.url }, buffer: { flushDelayMs: 50 } })
    app.get('/:id', async () => 'ok')
    assert.equal((await app.inject('/1')).body, 'ok')
    await sink.waitFor(({ spans }) => spans.length === 1)
    assert.equal((await app.inject('/2')).body, 'ok')
    await app.close()
  } finally {
    clock.restore()
  }
  assert.deepEqual(sink.spans.map(({ attributes }) => attributes['url.path']), ['/1', '/2'])
})

test('nock: requests with mocked calls are traced, and nock does not see light-trace’s exports', async (t) => {
  const sink = await startSink(t)
  nock.disableNetConnect()
  t.after(() => { nock.enableNetConnect(); nock.restore() })
  nock('http://stock.example').get('/7').reply(200, 'many')
  const app = fastify()
  await app.register(lightTrace, { exporter: { url: sink.url } })
  app.get('/', async () => (await fetch('http://stock.example/7')).text())
  assert.equal((await app.inject('/')).body, 'many')
  await app.close()
  assert.equal(sink.spans.filter(({ kind, name }) => kind === 'SERVER' && name === 'GET /').length, 1)
  assert.deepEqual(nock.pendingMocks(), [])
})
