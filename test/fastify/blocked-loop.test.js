'use strict'

// The line that blocked the event loop: the short half. test/slow/blocked-loop.test.js has ten runs of each cause.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { resolveOptions } = require('../../lib/config/options')
const { runInChild } = require('../support/child')

test('the line that blocked the loop is on the request that ran it and on the one that waited', async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say, root }) => {
    const { EventEmitter, once } = require('node:events')
    const { createCollector } = require(`${root}/lib/testing`)
    const lines = []
    const collector = createCollector()
    const isWatched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
    await app.register(lightTrace, { spanProcessors: [collector], blockedLoop: true })
    const steps = new EventEmitter()
    const isOpen = once(steps, 'open')
    app.get('/waits', () => new Promise((resolve) => {
      steps.once('release', resolve)
      steps.emit('open')
    }))
    app.get('/spins/:secret', async function spins (request) {
      await null
      const { secret } = request.params
      const until = performance.now() + 500
      while (performance.now() < until) secret.indexOf('x') // the line
      steps.emit('release', {})
      return {}
    })
    app.get('/after', async () => ({}))
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    await isWatched
    const waits = fetch(`${origin}/waits`)
    await isOpen
    await fetch(`${origin}/spins/marzipan`)
    await waits
    await fetch(`${origin}/after`)
    const line = require('node:fs').readFileSync(__filename, 'utf8').split('\n').findIndex((text) => text.endsWith('// the' + ' line')) + 1
    const spans = await collector.spans()
    await app.close()
    say({ file: __filename, line, lines, spans: spans.map(({ name, traceId, spanId, events }) => ({ name, traceId, spanId, events })) })
  })
  const { code, said: [{ file, line, lines, spans }], stderr } = await child.exit
  t.equal(code, 0)
  t.equal(stderr, '')
  const of = (name) => spans.find((span) => span.name === name).events.map(({ name, attributes }) => ({ name, attributes }))
  const [spins, waits] = [of('GET /spins/:secret'), of('GET /waits')]
  const expected = {
    name: 'light_trace.blocked_loop',
    attributes: {
      'code.function.name': 'spins',
      'code.file.path': file,
      'code.line.number': line,
      'code.stacktrace': new RegExp(`^(?: {4}at .*\\n)* {4}at spins \\(.*:${line}:\\d+\\)`)
    }
  }
  t.match(spins, [{ ...expected, attributes: { ...expected.attributes, 'light_trace.blocked_loop.role': 'culprit' } }])
  t.match(waits, [{ ...expected, attributes: { ...expected.attributes, 'light_trace.blocked_loop.role': 'victim' } }])
  t.same(of('GET /after'), [], 'who came later has not waited')
  const { traceId, spanId } = spans.find(({ name }) => name === 'GET /spins/:secret')
  const id = spins[0].attributes['light_trace.blocked_loop.id']
  t.match(id, /^[0-9a-f]{16}$/)
  for (const [{ attributes }] of [spins, waits]) {
    t.equal(attributes['light_trace.blocked_loop.culprit.trace_id'], traceId)
    t.equal(attributes['light_trace.blocked_loop.culprit.span_id'], spanId)
    t.equal(attributes['light_trace.blocked_loop.id'], id)
    t.ok(attributes['light_trace.blocked_loop.duration'] >= 0.1)
    t.notMatch(JSON.stringify(attributes), /marzipan/, 'no value of the code')
  }
  t.match(lines, [{ code: 'LT_WARN_LOOP_BLOCKED', msg: /^the event loop was blocked for \d+ ms.* at spins \(/ }])
  t.equal(lines.length, 1)
})

test('a wrong threshold is refused at register', async (t) => {
  for (const blockedLoop of [{ afterMs: 19 }, { afterMs: NaN }, { afterMs: Infinity }, { afterMs: '100' }, { after: 100 }, 100]) {
    t.throws(() => resolveOptions({ blockedLoop }, {}), { code: /^LT_ERR_OPTION_/ }, JSON.stringify(blockedLoop))
  }
  t.same(resolveOptions({ blockedLoop: true }, {}).blockedLoop, { afterMs: 100 })
  t.same(resolveOptions({ blockedLoop: { afterMs: 20 } }, {}).blockedLoop, { afterMs: 20 })
})

test('LIGHT_TRACE_BLOCKED_LOOP is true, false or milliseconds, and code wins', async (t) => {
  const resolved = (value, options = {}) => resolveOptions(options, { LIGHT_TRACE_BLOCKED_LOOP: value })
  t.same(resolved('true').blockedLoop, { afterMs: 100 })
  t.same(resolved('250').blockedLoop, { afterMs: 250 })
  for (const value of ['', 'false']) t.equal(resolved(value).blockedLoop, null)
  t.equal(resolved('true', { blockedLoop: false }).blockedLoop, null)
  for (const value of ['yes', '5', '-1', '1e3']) {
    const { blockedLoop, warnings } = resolved(value)
    t.equal(blockedLoop, null)
    t.match(warnings, [{ code: 'LT_WARN_ENV', message: /^LIGHT_TRACE_BLOCKED_LOOP is ignored/ }])
  }
})

test('without the option there is no worker, and nothing of it is loaded', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', registerGlobals: false })
  await app.ready()
  t.notOk(Object.keys(require.cache).some((file) => file.includes('blocked-loop.js')))
})
