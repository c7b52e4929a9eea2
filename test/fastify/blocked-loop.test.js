'use strict'

// The option `blockedLoop`. What it finds is in test/slow/blocked-loop.test.js, which nothing may run beside: it is about durations.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { resolveOptions } = require('../../lib/config/options')

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
