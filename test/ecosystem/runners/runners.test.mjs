// The test runners and mocks that apps are tested with: light-trace works under each, and no runner hangs on it.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fastify from 'fastify'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'
import nock from 'nock'
import sinon from 'sinon'

const run = promisify(execFile)
const here = import.meta.dirname
const TIMEOUT_MS = 120_000

test('Jest, with its open handles looked for', { timeout: TIMEOUT_MS }, async () => {
  const { stderr } = await run(process.execPath, ['node_modules/jest/bin/jest.js', '--detectOpenHandles', '--ci'], { cwd: here })
  assert.match(stderr, /Tests: +2 passed, 2 total/)
  assert.doesNotMatch(stderr, /open handle/)
})

test('Vitest', { timeout: TIMEOUT_MS }, async () => {
  const { stdout } = await run(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--dir', 'vitest', '--no-color'], { cwd: here, env: { ...process.env, NO_COLOR: '1' } })
  assert.match(stdout, /Tests +2 passed \(2\)/)
})

test('fake timers of node:test and of sinon', async (t) => {
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

test('nock: a mocked call has its span, and what light-trace exports is not asked of nock', async (t) => {
  nock.disableNetConnect()
  t.after(() => { nock.enableNetConnect(); nock.restore() })
  nock('http://stock.example').get('/7').reply(200, 'many')
  const collector = createCollector()
  const app = fastify()
  t.after(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector] })
  app.get('/', async () => (await fetch('http://stock.example/7')).text())
  assert.equal((await app.inject('/')).body, 'many')
  const [server] = await collector.spans()
  assert.equal(server.name, 'GET /')
  assert.deepEqual(nock.pendingMocks(), [])
})
