'use strict'

// light-trace does not depend on names or source text of functions, since a minifier changes both. test/ecosystem/bundlers tests other
// bundlers.
// Feature: testing

const { execFile } = require('node:child_process')
const { join } = require('node:path')
const { promisify } = require('node:util')
const { build } = require('esbuild')
const { test } = require('tap')
const { without } = require('../support/features')

const root = join(__dirname, '../..')

const hasStages = !without('stages')
const stages = (name) => [name, ...(hasStages ? ['  INTERNAL onRequest', '  INTERNAL preHandler'] : [])]

for (const minify of [false, true]) {
  test(`a bundle has all features of the app${minify ? ', minified' : ''}`, async (t) => {
    const file = join(t.testdir(), 'app.cjs')
    await build({
      entryPoints: [join(root, 'test/ecosystem/bundlers/features.cjs')],
      outfile: file,
      bundle: true,
      platform: 'node',
      minify,
      logLevel: 'silent',
      alias: { 'light-trace/testing': join(root, 'lib/features/testing/testing.js'), 'light-trace': join(root, 'index.js') }
    })
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env: { ...process.env, NODE_OPTIONS: '', BLOCKS: without('blocked-loop') ? '0' : '20' } })
    t.same(JSON.parse(stdout), {
      tree: [...stages('SERVER GET /bad'), ...(hasStages ? ['  INTERNAL handler'] : []), ...stages('SERVER GET')].join('\n'),
      hasOwnLogger: true,
      held: !without('logs'),
      blocked: !without('blocked-loop'),
      warned: []
    })
  })
}
