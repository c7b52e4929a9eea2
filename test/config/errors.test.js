'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { test } = require('tap')
const { LightTraceError } = require('../../lib/config/checks')

const root = path.join(__dirname, '../..')

test('docs/errors.md lists every code that there is, and only those', (t) => {
  const documented = [...read('docs/errors.md').matchAll(/^\| `(LT_[A-Z_]+)` \|/gm)].map(([, code]) => code)
  t.same(documented, [...new Set(documented)], 'each once')
  t.same([...documented].sort(), codesInSource())
  t.end()
})

test('an error shows its name and code and is an Error', (t) => {
  const error = new LightTraceError('LT_ERR_X', 'message')
  t.ok(error instanceof Error)
  t.equal(String(error), 'LightTraceError: message')
  t.equal(error.code, 'LT_ERR_X')
  t.match(error.stack, /^LightTraceError: message\n/)
  t.same(Object.keys(error), ['code'])
  t.end()
})

function codesInSource () {
  const files = ['index.js', 'register.js', ...fs.readdirSync(path.join(root, 'lib'), { recursive: true }).map((file) => path.join('lib', file))]
  const sources = files.filter((file) => file.endsWith('.js') && fs.existsSync(path.join(root, file))).map(read)
  return [...new Set(sources.flatMap((source) => source.match(/\bLT_(?:ERR|WARN)_[A-Z_]+/g) ?? []))].sort()
}

function read (file) {
  return fs.readFileSync(path.join(root, file), 'utf8')
}
