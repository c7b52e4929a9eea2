// The statements of docs/interop.md about Sentry, version by version.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

for (const [name, expected] of [
  ['sentry10', { mode: 'sdk', isOneTrace: true }],
  ['sentry11', { mode: 'none', isOneTrace: false }]
]) {
  test(`${name}: ${expected.isOneTrace ? 'its provider makes the spans' : 'it registers nothing, and has its own trace'}`, async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['sentry.cjs', name], { cwd: import.meta.dirname, env: { ...process.env, OTEL_TRACES_EXPORTER: 'none' } })
    assert.deepEqual(JSON.parse(stdout.trim().split('\n').at(-1)), expected)
  })
}
