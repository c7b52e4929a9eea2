'use strict'

const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')

const codes = (environment) => resolveOptions({}, environment).warnings.map(({ code }) => code)

test('Node\'s own tracer next to light-trace is reported at start', async (t) => {
  for (const environment of [{ NODE_OTEL: '1' }, { NODE_OTEL_ENDPOINT: 'http://localhost:4318' }, { NODE_OTEL: '0', NODE_OTEL_ENDPOINT: '' }]) {
    t.same(codes(environment), environment.NODE_OTEL === '0' ? [] : ['LT_WARN_NODE_OTEL'])
  }
  t.same(codes({ NODE_OTEL: ' ' }), [])
  t.match(resolveOptions({}, { NODE_OTEL: '1' }).warnings[0].message, /NODE_OTEL .*second SERVER span/)
})
