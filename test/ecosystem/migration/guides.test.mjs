// Runs the code of each guide in docs/migration.md, before and after. Both give the same answer, and the new span has the parent and the
// attribute of the old one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { docsCode, startProgram } from '../../test/support/ecosystem.js'
import { startCollector } from './collector.mjs'
import { CALLER, send } from './requests.mjs'

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const LIMIT = { timeout: 120_000 }
const USER = { path: '/users/7', traceId: TRACE_ID }

// Appended to each program: it listens, has a route that fails, and exits on SIGTERM.
const REST = `
app.get('/fails', async () => { throw new Error('no') })
app.listen({ port: 0, host: '127.0.0.1' }).then((origin) => console.log('at ' + origin))
process.once('SIGTERM', async () => {
  await app.close()
  await globalThis.shutDownTracing?.()
})
`
const SHUT_SENTRY_DOWN = "globalThis.shutDownTracing = () => require('sentry11').close(2000)\n"

async function start (t, code) {
  const collector = await startCollector()
  t.after(() => collector.close())
  const program = startProgram(t, [process.execPath, '-e', code + REST], {
    cwd: import.meta.dirname,
    env: {
      OTEL_TRACES_EXPORTER: undefined, // with it, dd-trace would send OTLP
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_NODE_RESOURCE_DETECTORS: 'none',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '10',
      DD_TRACE_AGENT_URL: collector.url,
      DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
      DD_REMOTE_CONFIGURATION_ENABLED: 'false',
      DD_TRACE_STARTUP_LOGS: 'false',
      SENTRY_DSN: `${collector.url.replace('//', '//key@')}/1`
    }
  })
  const [, origin] = await program.says(/^at (.*)$/m)
  return { ...collector, ask: (request) => send(origin, request), end: () => program.kill('SIGTERM') }
}

/** The two programs of a guide. Sentry's package is renamed, because its versions 10 and 11 are both installed. */
function guide (heading) {
  const programs = docsCode('migration.md', heading, 'js').map((code) => code.replace("'@sentry/node'", "'sentry11'"))
  assert.equal(programs.length, 2)
  return { before: programs[0], after: programs[1] }
}

const named = (name, spans) => spans.find((span) => span.traceId === TRACE_ID && span.name === name)

test('from @fastify/request-context: the value is there', LIMIT, async (t) => {
  for (const code of Object.values(guide('From @fastify/request-context'))) {
    const { ask } = await start(t, code)
    const { status, body } = await ask({ path: '/tenant', headers: { 'x-tenant': 'acme' }, traceId: TRACE_ID })
    assert.deepEqual([status, body], [200, 'acme'])
  }
})

test('from @fastify/otel: one SERVER span has the attribute and the route', LIMIT, async (t) => {
  const { before, after } = guide('From @fastify/otel')
  const theirs = await start(t, before)
  const ours = await start(t, after)
  for (const { ask } of [theirs, ours]) assert.equal((await ask(USER)).body, '{"id":"7"}')
  ours.end()
  // Its batch is sent after five seconds. An end right after the response may come before the end of its span.
  await theirs.until(() => named('request', theirs.spans) && named('GET /users/:id', theirs.spans))
  theirs.end()
  assert.equal(named('request', theirs.spans).attributes['user.id'], '7')
  await ours.until(() => named('GET /users/:id', ours.spans))
  assert.equal(ours.spans.length, 1)
  assertRequest(ours.spans[0])
})

test('from dd-trace: the attribute and the custom span are there', LIMIT, async (t) => {
  const { before, after } = guide('From dd-trace')
  const theirs = await start(t, before)
  const ours = await start(t, after)
  for (const { ask, end } of [theirs, ours]) {
    assert.equal((await ask(USER)).body, '{"id":"7"}')
    end()
  }
  await theirs.until(() => named('GET /users/:id', theirs.spans) && named('load user', theirs.spans))
  assertRequest(named('GET /users/:id', theirs.spans))
  await ours.until(() => named('GET /users/:id', ours.spans))
  assertRequest(named('GET /users/:id', ours.spans))
  assertChild(ours.spans)
})

test('from Sentry 11: light-trace has the traces, and Sentry has the errors in them', LIMIT, async (t) => {
  const { before, after } = guide('From Sentry 11')
  const theirs = await start(t, SHUT_SENTRY_DOWN + before)
  const ours = await start(t, SHUT_SENTRY_DOWN + after)
  for (const { ask, end } of [theirs, ours]) {
    assert.equal((await ask(USER)).body, '{"id":"7"}')
    assert.equal((await ask({ path: '/fails', traceId: 'f'.repeat(32) })).status, 500)
    end()
  }
  await theirs.until(() => theirs.spans.some(({ name }) => name === 'load user') && theirs.errors.length > 0)
  assert.ok(theirs.spans.some(({ attributes }) => attributes['user.id'] === '7'))
  await ours.until(() => named('GET /users/:id', ours.spans) && ours.errors.length > 0 && ours.spans.some(({ name }) => name === 'GET /fails'))
  assertRequest(named('GET /users/:id', ours.spans))
  assertChild(ours.spans)
  assert.ok(ours.spans.every(({ scope }) => scope === 'light-trace'))
  const { traceId, spanId } = ours.spans.find(({ name }) => name === 'GET /fails')
  assert.deepEqual(ours.errors, [{ message: 'no', traceId, spanId }])
})

function assertRequest ({ kind, parentSpanId, attributes }) {
  assert.deepEqual({ kind, parentSpanId, user: attributes['user.id'], route: attributes['http.route'] }, { kind: 'SERVER', parentSpanId: CALLER, user: '7', route: '/users/:id' })
}

function assertChild (spans) {
  assert.equal(named('load user', spans).parentSpanId, named('GET /users/:id', spans).spanId)
}
