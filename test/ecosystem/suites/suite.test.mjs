// Test suites of other packages. With light-trace preloaded and a collector that accepts its spans, they pass as they do without it.
// known-differences.json lists the known differences with their reasons, and any other difference fails. package.json lists the packages,
// and the versions of Node on which they run.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { compare } from './compare.mjs'

const here = import.meta.dirname
const { suites } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
const knownFile = join(here, 'known-differences.json')
const known = existsSync(knownFile) ? JSON.parse(readFileSync(knownFile, 'utf8')) : []
const nodes = Object.entries(JSON.parse(process.env.NODES)) // major version → path of its binary

for (const [node, binary] of nodes) {
  for (const [name, { files, testsMin, takesLong = false }] of Object.entries(suites)) {
    if (takesLong && process.env.ALL !== '1') continue
    test(`${name}’s own tests pass with light-trace as without it, on Node ${node}`, async (t) => {
      const { url, bytes, close } = await startCollector()
      t.after(close)
      const cwd = join(here, 'node_modules', name)
      const { count, differences } = await compare({ binary, cwd, pattern: new RegExp(files), url })
      t.diagnostic(`${count} tests, ${differences.length} differ`)
      assert.ok(count >= testsMin, `${count} tests were run`) // fewer tests mean that the suite was not found and nothing was compared
      assert.ok(bytes() > 0, 'the tests were traced')
      const tests = known.filter(({ suite }) => suite === name).map(({ test }) => test)
      assert.deepEqual(differences.filter((difference) => !isKnown(difference, tests)), [], 'there is no difference except the known ones')
      assert.deepEqual(tests.filter((test) => !differences.includes(test)), [], 'each known difference still occurs')
    })
  }
}

// If a test fails, the tests that contain it fail, too.
function isKnown (name, tests) {
  return tests.some((test) => test === name || test.startsWith(`${name} > `))
}

async function startCollector () {
  let bytes = 0
  const server = createServer((request, response) => {
    request.on('data', (piece) => { bytes += piece.length })
    request.on('end', () => response.end())
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, bytes: () => bytes, close: () => { server.closeAllConnections(); server.close() } }
}
