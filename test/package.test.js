'use strict'

// What is published holds all that its users need.

const { execFile } = require('node:child_process')
const { join } = require('node:path')
const { test } = require('tap')
const { requiredFiles } = require('../scripts/required-files')

const ROOT = join(__dirname, '..')

test('the package holds every file that its entries need', async (t) => {
  const packed = new Set(await packedFiles())
  const required = requiredFiles()
  t.ok(required.size > 80)
  for (const file of required) t.ok(packed.has(file), file)
  t.ok(packed.has('SECURITY.md'))
  t.notOk([...packed].some((file) => /^(?:test|bench|scripts|node_modules)\//.test(file)), 'and nothing that they do not')
})

test('every entry can be required and imported by its name', async (t) => {
  t.type(require('light-trace'), 'function')
  const { default: plugin, lightTrace, current, traceClient } = await import('light-trace')
  for (const exported of [plugin, lightTrace, current, traceClient]) t.type(exported, 'function', 'by every name that the types have')
  t.type(require('light-trace/testing').createCollector, 'function')
  t.type((await import('light-trace/testing')).createCollector, 'function')
})

function packedFiles () {
  return new Promise((resolve, reject) => {
    const command = process.platform === 'win32' ? 'npm.cmd' : 'npm'
    execFile(command, ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT, maxBuffer: 10_000_000 }, (error, stdout) => {
      if (error !== null) reject(error)
      else resolve(Object.values(JSON.parse(stdout))[0].files.map(({ path }) => path))
    })
  })
}
