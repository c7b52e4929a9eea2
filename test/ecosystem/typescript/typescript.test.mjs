// Strict TypeScript: the types compile without errors, and the app runs with tsx and (Node 22.18 and later) with Node.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const here = import.meta.dirname
const env = { ...process.env, OTEL_TRACES_EXPORTER: 'none' }

for (const [name, options] of Object.entries({
  'module nodenext': { module: 'nodenext', moduleResolution: 'nodenext' },
  'a bundler’s resolution': { module: 'esnext', moduleResolution: 'bundler' },
  'no types but ours': { module: 'nodenext', types: [] }
})) {
  test(`strict, ${name}`, async () => {
    const file = join(here, 'tsconfig.json')
    writeFileSync(file, JSON.stringify({ compilerOptions: { strict: true, noEmit: true, target: 'es2022', skipLibCheck: true, types: ['node'], exactOptionalPropertyTypes: true, ...options }, files: ['app.ts', 'preload.ts'] }))
    const { stdout } = await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', file], { cwd: here }).catch((error) => error)
    assert.equal(stdout, '')
  })
}

test('tsx runs it', async () => {
  const { stdout } = await run(process.execPath, ['node_modules/tsx/dist/cli.mjs', 'app.ts'], { cwd: here, env })
  assert.equal(stdout, '{"id":2,"tenant":"acme"} {"id":2}\n5\n')
  assert.equal((await run(process.execPath, ['node_modules/tsx/dist/cli.mjs', 'preload.ts'], { cwd: here, env })).stdout, '32\n')
})

test('Node runs it', { skip: !process.features.typescript && 'this Node does not strip types' }, async () => {
  const { stdout } = await run(process.execPath, ['app.ts'], { cwd: here, env })
  assert.equal(stdout, '{"id":2,"tenant":"acme"} {"id":2}\n5\n')
})
