// A bundled app keeps the OpenTelemetry API, its name and its spans, with the four common bundlers and without node_modules. No bundler
// warns about our code.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import commonjs from '@rollup/plugin-commonjs'
import json from '@rollup/plugin-json'
import nodeResolve from '@rollup/plugin-node-resolve'
import ncc from '@vercel/ncc'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'
import { rollup } from 'rollup'
import webpack from 'webpack'
import { docsCode } from '../../test/support/ecosystem.js'

const require = createRequire(import.meta.url)
const here = import.meta.dirname
// Warnings about Fastify's dependencies are not about our code.
const OURS = /light-trace/
// ES modules have no `require`, and bundlers leave requires of Node's own modules unchanged. The banner is that of docs/recipes.md.
const [, BANNER] = /const banner = `([^`]*)`/.exec(docsCode('recipes.md', 'Bundles', 'js')[0])

const BUNDLERS = {
  async esbuild (entry, file, isEsm) {
    const { warnings } = await build({
      entryPoints: [entry], outfile: file, bundle: true, platform: 'node', format: isEsm ? 'esm' : 'cjs', logLevel: 'silent', ...(isEsm && { banner: { js: BANNER } })
    })
    return warnings.map(({ text, location }) => `${location?.file}: ${text}`)
  },

  webpack (entry, file, isEsm) {
    const output = { path: join(file, '..'), filename: 'bundle' + (isEsm ? '.mjs' : '.cjs'), ...(isEsm && { module: true, chunkFormat: 'module', library: { type: 'module' } }) }
    return new Promise((resolve, reject) => {
      webpack({ mode: 'production', target: 'node20', entry, output, ...(isEsm && { experiments: { outputModule: true } }) }, (error, stats) => {
        if (error) return reject(error)
        const { errors, warnings } = stats.toJson({ errors: true, warnings: true })
        assert.deepEqual(errors, [])
        resolve(warnings.map(({ moduleName, message }) => `${moduleName}: ${message}`))
      })
    })
  },

  async rollup (entry, file, isEsm) {
    const warnings = []
    const bundle = await rollup({
      input: entry, plugins: [nodeResolve({ preferBuiltins: true }), commonjs({ ignoreDynamicRequires: true }), json()], onwarn: ({ id, ids, message }) => warnings.push(`${id ?? ids}: ${message}`)
    })
    await bundle.write({ file, format: isEsm ? 'es' : 'cjs', inlineDynamicImports: true, ...(isEsm && { banner: BANNER }) })
    // Cycles between CommonJS modules are allowed, in Fastify and in light-trace.
    return warnings.filter((warning) => !/Circular dependency/.test(warning))
  },

  async ncc (entry, file) {
    const { code } = await ncc(entry, { cache: false, quiet: true, esm: file.endsWith('.mjs') })
    writeFileSync(file, code)
    return []
  }
}

for (const [name, bundle] of Object.entries(BUNDLERS)) {
  for (const format of ['cjs', 'mjs']) {
    test(`${name}, ${format === 'cjs' ? 'CommonJS' : 'ES module'}`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'light-trace-bundle-')) // without node_modules in any parent directory
      t.after(() => rmSync(folder, { recursive: true }))
      const file = join(folder, `bundle.${format}`)
      const warnings = await bundle(join(here, `app.${format}`), file, format === 'mjs')
      assert.deepEqual(warnings.filter((warning) => OURS.test(warning)), [])

      const { stdout, stderr } = await run(file, folder)
      const lines = stdout.trim().split('\n')
      const answer = lines.find((line) => line.startsWith('{'))
      assert.deepEqual(JSON.parse(answer), { inSpan: true, active: true, current: true })
      assert.match(stdout, /SERVER GET \/users\/:id[^]*INTERNAL load user/)
      assert.equal(stderr, '')
    })
  }
}

// A minifier renames functions, changes their text, and uses its own name for `require` in them.
const stages = (name) => [name, '  INTERNAL onRequest', '  INTERNAL preHandler']
const MINIFIERS = {
  ...BUNDLERS,
  esbuild: (entry, outfile) => build({ entryPoints: [entry], outfile, bundle: true, platform: 'node', minify: true, logLevel: 'silent' }),
  async rolldown (input, file) {
    const bundle = await rolldown({ input, platform: 'node', logLevel: 'silent' })
    await bundle.write({ file, format: 'cjs', minify: true })
  },
  async ncc (entry, file) { writeFileSync(file, (await ncc(entry, { cache: false, quiet: true, minify: true })).code) }
}

for (const [name, bundle] of Object.entries(MINIFIERS)) {
  test(`${name}, minified: held lines, the spans of stages and the line that blocks the loop are right`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'light-trace-bundle-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'bundle.cjs')
    await bundle(join(here, 'features.cjs'), file, false)
    const { stdout } = await run(file, folder)
    assert.deepEqual(JSON.parse(stdout), {
      tree: [...stages('SERVER GET /bad'), '  INTERNAL handler', ...stages('SERVER GET')].join('\n'), hasOwnLogger: true, held: true, blocked: true, warned: []
    })
  })
}

test('the service has the name from npm', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'light-trace-bundle-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'name.cjs')
  writeFileSync(join(folder, 'entry.cjs'), `
    const app = require(${JSON.stringify(require.resolve('fastify'))})()
    app.register(require(${JSON.stringify(require.resolve('light-trace'))}), { spanProcessors: [{ onStart () {}, onEnd (span) { console.log(span.resource.attributes['service.name']) }, async forceFlush () {}, async shutdown () {} }] })
    app.inject('/').then(() => app.close())`)
  await BUNDLERS.esbuild(join(folder, 'entry.cjs'), file, false)
  assert.equal((await run(file, folder, { npm_package_name: 'shop' })).stdout.trim(), 'shop')
})

function run (file, cwd, env = {}) {
  const { npm_package_name: own, ...clean } = process.env
  return promisify(execFile)(process.execPath, [file], { cwd, env: { ...clean, OTEL_TRACES_EXPORTER: 'console', ...env } })
}
