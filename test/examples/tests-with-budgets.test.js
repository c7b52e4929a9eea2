'use strict'

const { cpSync, readFileSync, symlinkSync, writeFileSync } = require('node:fs')
const { basename, join } = require('node:path')
const { test } = require('tap')
const { ended, directoryOf, promised } = require('../support/examples')

const EXAMPLE = directoryOf('tests-with-budgets')

test('the example\'s tests pass, and so does the check of their recording', async (t) => {
  const { code, output } = await ended('check', EXAMPLE)
  t.equal(code, 0, output)
  t.match(output, /^# pass 2$|^ℹ pass 2$/m)
})

test('a second call fails the test that allows one', async (t) => {
  const directory = changed(t, "app.get('/stock', async () => ", (found) => `${found}await fetch(\`\${stock}/items\`) && `)
  const { code, output } = await ended('test', directory)
  t.equal(code, 1, output)
  for (const line of promised('tests-with-budgets').split('\n')) t.ok(output.includes(line.replace(/^LightTraceError: /, '')), `${line}\n${output}`)
  t.match(output, /fail 1$/m)
})

test('a fourth call for an order passes the tests and fails the check', async (t) => {
  const directory = changed(t, 'return items', (found) => `await fetch(\`\${stock}/items/jug\`)\n    ${found}`)
  const { code, output } = await ended('check', directory)
  t.equal(code, 1, output)
  t.match(output, /pass 2$/m)
  t.ok(output.includes('GET /orders/:id: http: 4 calls, 3 allowed'), output)
})

/** A copy of the example with a change in its app.js. */
function changed (t, text, change) {
  const directory = t.testdir({})
  cpSync(EXAMPLE, directory, { recursive: true, filter: (file) => basename(file) !== 'node_modules' })
  symlinkSync(join(EXAMPLE, 'node_modules'), join(directory, 'node_modules'))
  const file = join(directory, 'app.js')
  const source = readFileSync(file, 'utf8')
  t.ok(source.includes(text), text)
  writeFileSync(file, source.replace(text, change(text)))
  return directory
}
