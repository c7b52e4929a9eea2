'use strict'

const { test } = require('tap')
const { LightTraceError } = require('../../lib/config/checks')

test('an error shows its name and code and is an Error', (t) => {
  const error = new LightTraceError('LT_ERR_X', 'message')
  t.ok(error instanceof Error)
  t.equal(String(error), 'LightTraceError: message')
  t.equal(error.code, 'LT_ERR_X')
  t.match(error.stack, /^LightTraceError: message\n/)
  t.same(Object.keys(error), ['code'])
  t.end()
})
