'use strict'

// What is published holds all that its users need.

const { execFile } = require('node:child_process')
const { existsSync, readFileSync } = require('node:fs')
const { dirname, join, relative } = require('node:path')
const { test } = require('tap')

const ROOT = join(__dirname, '..')
const manifest = require('../package.json')

test('the package holds every file that its entries need', async (t) => {
  const packed = new Set(await packedFiles())
  const entries = ['index.js', 'index.d.ts', ...Object.values(manifest.exports).flatMap((entry) => Object.values(typeof entry === 'string' ? [entry] : entry))]
    .map((entry) => relative(ROOT, join(ROOT, entry)))
  for (const file of withRequired(entries)) t.ok(packed.has(file), file)
  t.notOk([...packed].some((file) => /^(?:test|bench|scripts|node_modules)\//.test(file)), 'and nothing that they do not')
})

test('every entry can be required and imported by its name', async (t) => {
  t.type(require('light-trace'), 'function')
  const { default: plugin, lightTrace, current, traceClient } = await import('light-trace')
  for (const exported of [plugin, lightTrace, current, traceClient]) t.type(exported, 'function', 'by every name that the types have')
  t.type(require('light-trace/testing').createCollector, 'function')
  t.type((await import('light-trace/testing')).createCollector, 'function')
})

/** The files and all that they require or import of ours, to the end. */
function withRequired (entries) {
  const found = new Set()
  const todo = [...entries]
  while (todo.length > 0) {
    const file = todo.pop()
    if (found.has(file)) continue
    found.add(file)
    if (!/\.(?:js|d\.ts)$/.test(file)) continue
    for (const [, path] of readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:require\(|from )'(\.\.?(?:\/[^']*)?)'/g)) {
      if (!file.endsWith('.d.ts')) todo.push(relative(ROOT, fileOf(join(ROOT, dirname(file), path))))
    }
  }
  return found
}

function fileOf (path) {
  return [path, `${path}.js`, join(path, 'index.js')].find((file) => /\.\w+$/.test(file) && existsSync(file))
}

function packedFiles () {
  return new Promise((resolve, reject) => {
    const command = process.platform === 'win32' ? 'npm.cmd' : 'npm'
    execFile(command, ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT, maxBuffer: 10_000_000 }, (error, stdout) => {
      if (error !== null) reject(error)
      else resolve(Object.values(JSON.parse(stdout))[0].files.map(({ path }) => path))
    })
  })
}
